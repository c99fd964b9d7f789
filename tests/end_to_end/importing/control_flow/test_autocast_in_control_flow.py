"""Regions of `torch.autocast` in branches and bodies, and around them: products have eager's element types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.map import map as map_slices
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.utils.checkpoint import checkpoint

import spyre_mlir
from tests.end_to_end.importing.against_eager import eager, results
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
WEIGHT = torch.linspace(-0.5, 0.5, 36).reshape(6, 6)
X = torch.linspace(-1.0, 1.5, 24).reshape(4, 6)


def region(enabled: bool = True) -> Any:
    return torch.autocast("cpu", torch.bfloat16 if enabled else None, enabled)


def product(x: Tensor) -> Tensor:
    with region():
        return (x @ WEIGHT).float()


def plain_product(x: Tensor) -> Tensor:
    with region(enabled=False):
        return (x @ WEIGHT).float()


def in_a_branch(x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, product, lambda x: x * 2, (x,))


def in_a_branch_of_a_branch(x: Tensor) -> Any:
    return torch.cond(x.sum() > 0, in_a_branch, lambda x: x - 1, (x,))


def around_branches(x: Tensor) -> Any:
    with region():
        return torch.cond(x.sum() > 0, lambda x: x @ WEIGHT, lambda x: WEIGHT[:4] @ x.t() @ x, (x,))


def in_a_loop(x: Tensor) -> Any:
    return while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, product(y).tanh()), (torch.tensor(0), x))[1]


def around_a_loop(x: Tensor) -> Any:
    with region():
        body: Any = lambda i, y: (i + 1, (y @ WEIGHT).float().tanh())  # noqa: E731
        return while_loop(lambda i, _: i < 2, body, (torch.tensor(0), x))[1]


def in_a_scan(x: Tensor) -> Any:
    return scan(lambda c, row: (c * 0.5 + product(row), row * 2), x[0] * 2, x)


def around_a_map(x: Tensor) -> Any:
    with region():
        return map_slices(lambda row: row @ WEIGHT, x)


def off_in_a_branch(x: Tensor) -> Any:
    with region():
        return torch.cond(x.sum() > 0, plain_product, lambda x: x * 2, (x,))


def off_in_both_branches(x: Tensor) -> Any:
    with region():
        return torch.cond(x.sum() > 0, plain_product, lambda x: plain_product(x) * 2, (x,)) + 1


def off_in_a_loop(x: Tensor) -> Any:
    with region():
        body: Any = lambda i, y: (i + 1, plain_product(y).tanh())  # noqa: E731
        return while_loop(lambda i, _: i < 2, body, (torch.tensor(0), x))[1]


def off_in_a_scan(x: Tensor) -> Any:
    with region():
        return scan(lambda c, row: (c * 0.5 + plain_product(row), row * 2), x[0] * 2, x)


def in_a_checkpoint(x: Tensor) -> Any:
    return checkpoint(product, x, use_reentrant=False) * 2


HALVES = (
    in_a_branch, in_a_branch_of_a_branch, around_branches, in_a_loop, around_a_loop, in_a_scan, around_a_map,
    in_a_checkpoint,
)  # fmt: skip
SINGLES = (off_in_a_branch, off_in_both_branches, off_in_a_loop, off_in_a_scan)


@pytest.fixture(autouse=True)
def compiled_anew() -> None:
    torch._dynamo.reset()


def products(text: str) -> set[str]:
    """The element types that products of a program have."""
    lines = (line for line in text.splitlines() if " = aten.matmul(" in line)
    return {line.rstrip(">").rpartition("x")[2] for line in lines}


@pytest.mark.parametrize("program", [*HALVES, *SINGLES], ids=lambda p: p.__name__)
def test_products_have_eagers_types(program: Callable[..., Any]) -> None:
    compiled = spyre_mlir.compile(FunctionModel(program), (X,), numerics="exact")
    assert products(compiled.mlir("aten")) == {"bf16" if program in HALVES else "f32"}


@pytest.mark.parametrize("how", ["compile", "torch.compile"])
@pytest.mark.parametrize("program", [*HALVES, *SINGLES], ids=lambda p: p.__name__)
def test_results_are_eagers(program: Callable[..., Any], how: str) -> None:
    if how == "compile":
        compiled: Any = spyre_mlir.compile(FunctionModel(program), (X,), numerics="exact")
    else:
        compiled = torch.compile(FunctionModel(program), backend="spyre", options={"numerics": "exact"}, fullgraph=True)
    # Halves are computed wide (decision 25), so eager's own rounding is the difference.
    tolerance = 0.02 if program in HALVES else 1e-6
    for x in (X, -X):
        for got, wanted in zip(results(compiled, (x,)), eager(FunctionModel(program), (x,)), strict=True):
            torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)
