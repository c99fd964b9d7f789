"""Orderings of equal elements in the reference: the same elements as torch, and of equals the first one first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.frontend.reference.stable_order import EqualsInOrder

# Long enough that torch's own orders are not stable (`test_torch_itself_is_not_stable`).
X = torch.randint(0, 5, (3, 65), generator=torch.Generator().manual_seed(0)).float()
RISING = np.argsort(X.numpy(), axis=1, kind="stable")
FALLING = np.argsort(-X.numpy(), axis=1, kind="stable")
CASES: dict[str, tuple[Callable[[Tensor], Any], Any]] = {
    "sort": (lambda x: torch.sort(x)[1], RISING),
    "falling": (lambda x: torch.sort(x, 1, descending=True)[1], FALLING),
    "said_not_stable": (lambda x: torch.argsort(x, stable=False), RISING),
    "topk": (lambda x: torch.topk(x, 5)[1], FALLING[:, :5]),
    "topk_unsorted": (lambda x: torch.topk(x, 5, largest=False, sorted=False)[1], RISING[:, :5]),
    "kthvalue": (lambda x: torch.kthvalue(x, 7)[1], RISING[:, 6]),
    "kthvalue_kept": (lambda x: torch.kthvalue(x.T, 7, 0, keepdim=True)[1], RISING[:, 6][None]),
    "median": (lambda x: torch.median(x, 1)[1], RISING[:, 32]),
}


def last_of_the_mode(row: np.ndarray[Any, Any]) -> int:
    values, counts = np.unique(row, return_counts=True)
    return int(np.flatnonzero(row == values[counts.argmax()])[-1])


CASES["mode"] = (lambda x: torch.mode(x, 1)[1], np.array([last_of_the_mode(row) for row in X.numpy()]))
CASES["mode_kept"] = (lambda x: torch.mode(x, 1, keepdim=True)[1], CASES["mode"][1][:, None])


@pytest.mark.parametrize("name", CASES)
def test_equal_elements_keep_their_order(name: str) -> None:
    function, wanted = CASES[name]
    with EqualsInOrder():
        assert np.array_equal(function(X).numpy(), wanted)


@pytest.mark.parametrize("name", [*CASES, "values_of_topk"])
def test_results_are_laid_out_as_those_of_torch(name: str) -> None:
    """Else a model that calls `view` on one of them, as mixtures of experts do, would run in torch alone."""
    function = CASES[name][0] if name in CASES else lambda x: torch.topk(x, 5)[0]
    wanted = function(X).stride()
    with EqualsInOrder():
        assert function(X).stride() == wanted


def test_torch_itself_is_not_stable() -> None:
    """Else all of this could go."""
    assert not np.array_equal(torch.sort(X)[1].numpy(), RISING)


@pytest.mark.parametrize(
    "function", [torch.sort, torch.median, torch.mode, lambda x, dim: torch.topk(x, 1, dim), torch.kthvalue]
)
def test_values_and_special_places_are_those_of_torch(function: Callable[..., Any]) -> None:
    for x in (torch.tensor([3.0, torch.nan, 1.0, torch.nan]), torch.tensor(2.0), torch.tensor([4, 2, 9])):
        wanted = function(x, 1, 0) if function is torch.kthvalue else function(x, dim=0)
        with EqualsInOrder():
            got = function(x, 1, 0) if function is torch.kthvalue else function(x, dim=0)
        torch.testing.assert_close(tuple(got), tuple(wanted), equal_nan=True)


class Sorted(torch.nn.Module):
    def forward(self, x: Tensor) -> Any:
        return *torch.sort(x), *torch.topk(x, 3), torch.mode(x, 0)[1]


@pytest.mark.slow(reason="compiles a sort; the order itself is tested by default")
def test_equals_do_not_count_as_errors() -> None:
    assert spyre_mlir.compile(Sorted(), (X,)).verify(X)


@pytest.mark.slow(reason="compiles a sort; the order itself is tested by default")
def test_a_host_step_keeps_the_order_too() -> None:
    """An ordering that is too long for the device is no other ordering."""
    x = torch.randint(0, 5, (9000,), generator=torch.Generator().manual_seed(0)).float()
    compiled = spyre_mlir.compile(Sorted(), (x,), host_fallback="allow")
    assert compiled.report().host_steps
    assert compiled.verify(x)
