"""Truth at the place that a number names."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.errors import UnsupportedError
from tests.unit.ops.cases import agree, budgets, check_samples, entry_of, result

MODULE = "spyre_mlir.ops.composed.indexing.one_hot"


def test_each_number_names_a_place() -> None:
    agree(result("one_hot", np.array([[2, 0], [1, 3]]), num_classes=4), np.eye(4, dtype=np.int64)[[[2, 0], [1, 3]]])


def test_there_may_be_no_classes() -> None:
    assert result("one_hot", np.zeros(0, np.int64), num_classes=0).shape == (0, 0)


def test_the_number_of_classes_must_be_said() -> None:
    classes = entry_of("one_hot").param("num_classes")
    assert classes is not None
    assert classes.default == -1  # as torch declares it
    with pytest.raises(UnsupportedError, match="one_hot without a number of classes\n  try: pass num_classes"):
        result("one_hot", np.array([0, 1]))


def test_nothing_is_rounded() -> None:
    assert budgets(MODULE) == {"one_hot": (0, False)}


def test_samples_fit() -> None:
    check_samples(MODULE)
