"""Lengths of counts that Python asks for, and checks of them in a trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from spyre_mlir.frontend.capture.tracing.known_counts import KnownCounts, length_asked
from spyre_mlir.frontend.torch_private import GuardOnDataDependentSymNode
from tests.functions import FunctionModel

CLASSES = torch.tensor([0, 2, 1, 2])


def unrolled(x: Tensor) -> Any:
    return torch.bincount(x, minlength=3).tolist()


def question(function: Callable[[Tensor], Any], *sizes: str) -> GuardOnDataDependentSymNode:
    with pytest.raises(GuardOnDataDependentSymNode) as error, KnownCounts(sizes):
        torch.export.export(FunctionModel(function), (CLASSES,))
    return error.value


def test_only_a_length_is_asked_for() -> None:
    assert length_asked(question(unrolled)) == {"u0"}
    assert length_asked(question(lambda x: x[x > 0].roll(1, 0))) == frozenset()
    assert length_asked(ValueError("Could not extract specialized integer")) == frozenset()


def test_counts_have_the_least_length() -> None:
    with KnownCounts({"u0"}):
        exported = torch.export.export(FunctionModel(unrolled), (CLASSES,))
        torch.export.export(FunctionModel(lambda x: x.bincount(None, 3).tolist()), (CLASSES,))
    assert len(exported.graph_signature.user_outputs) == 3


def test_other_lengths_stay_open() -> None:
    """That torch raises its question is what is tested."""
    question(lambda x: torch.bincount(x).tolist(), "u0")
    assert length_asked(question(unrolled, "u7")) == {"u0"}
