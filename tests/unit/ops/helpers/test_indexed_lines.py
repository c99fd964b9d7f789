"""Layouts of tensors by an index, against transpositions of numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spyre_mlir.ops.helpers.indexed_lines import IndexedLines
from tests.unit.ops.evaluation import made, run, same

X = np.arange(2.0 * 3 * 4 * 5).reshape(2, 3, 4, 5)


def test_an_index_of_its_own_everywhere_is_last() -> None:
    lines = IndexedLines((2, 3, 4, 5), 1, ())
    same(run(lambda b, x: lines.laid(x), X)[0], np.moveaxis(X, 1, -1))
    same(run(lambda b, x: lines.restored(lines.narrowed(b, x)), X)[0], X)
    assert made(lambda b, x: IndexedLines((3, 4), 1, ()).laid(x), X[0, :, :, 0]) == []


@pytest.mark.parametrize(("at", "repeated"), [(1, (3,)), (2, (1, 3)), (3, (0, 2)), (1, (0, 2, 3))])
def test_columns_over_which_an_index_repeats_stand_beside_each_other(at: int, repeated: tuple[int, ...]) -> None:
    lines = IndexedLines(X.shape, at, repeated)
    batch = [d for d in range(4) if d != at and d not in repeated]
    order = [*batch, *repeated, at]
    wanted = X.transpose(order).reshape([X.shape[d] for d in batch] + [-1, X.shape[at]])
    same(run(lambda b, x: lines.laid(x), X)[0], wanted)
    same(run(lambda b, x: lines.restored(lines.laid(x)), X)[0], X)
    same(run(lambda b, x: lines.narrowed(b, x), X)[0], wanted[..., :1, :])


def test_what_is_known_decides_over_what_an_index_repeats() -> None:
    index = np.zeros((2, 1, 3), np.int64)

    def of(b: Any, value: Any) -> Any:
        assert IndexedLines.of(b, value, 2) == IndexedLines((2, 1, 3), 2, ())  # a dimension of one entry is a batch
        return value

    run(of, index)
