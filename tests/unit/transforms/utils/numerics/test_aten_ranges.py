"""Bounds of integers at the aten level, against the numbers that torch computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.ir.modules import ops_in
from spyre_mlir.frontend import import_program
from spyre_mlir.ops import ATEN
from spyre_mlir.transforms.utils.numerics.aten_ranges import RANGED, AtenRanges, operator_name
from tests.functions import FunctionModel

X, Y = torch.tensor([[-(2**62), -7, 0, 255], [2**62, 3, 1, -1]]), torch.tensor([[5, -3, 2**40, 0], [1, 2, 3, 4]])
SHORT = torch.tensor([[-128, 127, 3], [0, 5, -1]], dtype=torch.int8)
FLOATS = torch.linspace(-2, 2, 8).reshape(2, 4)

# What is computed, and the bounds that are found; a bound that is too narrow would let a number leave the device.
KNOWN: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], tuple[int, int]]] = {
    "remainder": (lambda x, y: x % 256, (0, 255)),
    "negative remainder": (lambda x, y: x % -8, (-7, 0)),
    "clamp": (lambda x, y: x.clamp(-5, 900), (-5, 900)),
    "sum": (lambda x, y: x % 256 + y.clamp(-3, 2) * 2, (-6, 259)),
    "difference": (lambda x, y: torch.sub(x % 256, y % 4, alpha=3), (-9, 255)),
    "product": (lambda x, y: (x % 256) * y.clamp(-3, 2), (-765, 510)),
    "mask": (lambda x, y: x & 0xFFF, (0, 0xFFF)),
    "common bits": (lambda x, y: (x % 256) & y, (0, 255)),
    "joined bits": (lambda x, y: (x % 200) | (y % 100), (0, 255)),
    "not": (lambda x, y: ~(x % 16), (-16, -1)),
    "left": (lambda x, y: (x % 16) << 4, (0, 240)),
    "right": (lambda x, y: (x.clamp(-64, 64)) >> 3, (-8, 8)),
    "quotient": (lambda x, y: torch.div(x.clamp(-70, 70), 7, rounding_mode="floor"), (-10, 11)),
    "rows": (lambda x, y: (x % 256).sum(-1), (0, 1020)),
    "signed rows": (lambda x, y: x.clamp(-2, 1).sum(-1), (-8, 8)),
    "running": (lambda x, y: (x % 10).cumsum(1), (0, 72)),
    "largest": (lambda x, y: (x % 10).amax(0), (0, 9)),
    "its place": (lambda x, y: x.max(-1)[1], (0, 7)),
    "places of floats": (lambda x, y: (x > y).float().argmax(-1), (0, 7)),
    "selection": (lambda x, y: torch.where(y > 0, x % 9, y.clamp(0, 30)), (0, 30)),
    "filled": (lambda x, y: (x % 9).masked_fill(y > 0, -4), (-4, 8)),
    "moved": (lambda x, y: torch.cat([x % 9, y % 20]).t().flip(0)[1:], (0, 19)),
    "positions": (lambda x, y: torch.arange(4) * 100 + x % 3, (0, 302)),
    "truths": (lambda x, y: (x > y).long(), (0, 1)),
    "counted": (lambda x, y: (x > y).sum(), (0, 8)),
}
UNKNOWN: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "an input": lambda x, y: x.t(),
    "a sum": lambda x, y: x + 1,
    "a product of bounded": lambda x, y: (x % 2**40) * (y % 2**40),
    "a float": lambda x, y: (x.float() * 3).long(),
    "a shift by a tensor": lambda x, y: (x % 2) << y,
    "a table's row": lambda x, y: torch.gather(x, 1, y % 4),
}


def test_operators_with_bounds_are_in_the_op_table() -> None:
    assert sorted(RANGED - {operator_name(overload) for entry in ATEN for overload in entry.overloads}) == []


def last(function: Callable[..., Any], *inputs: Tensor) -> AtenOp:
    program = import_program(FunctionModel(function), inputs, None)
    return [op for op in ops_in(program.module) if isinstance(op, AtenOp)][-1]


@pytest.mark.parametrize("name", KNOWN)
def test_bounds_are_found_and_hold(name: str) -> None:
    function, bounds = KNOWN[name]
    got = function(X, Y)
    assert bounds[0] <= int(got.min()) <= int(got.max()) <= bounds[1]
    op = last(function, X, Y)
    assert AtenRanges().of(op.results[-1] if name == "its place" else op.results[0]) == bounds


@pytest.mark.parametrize("name", UNKNOWN)
def test_all_of_the_type_where_nothing_is_known(name: str) -> None:
    op = last(UNKNOWN[name], X, Y)
    assert AtenRanges().of(op.results[0]) == (-(2**63), 2**63 - 1)
    assert "its integers may be as large as " in (AtenRanges().beyond(op) or "")


def test_rows_may_be_chosen_by_any_index() -> None:
    op = last(lambda x, y: torch.nn.functional.embedding(x, FLOATS), Y % 2, Y)
    assert op.overload == "embedding"
    assert AtenRanges().beyond(op) is None


def test_short_integers_wrap_but_steps_before_that_may_be_too_large() -> None:
    assert AtenRanges().beyond(last(lambda a: a * a, SHORT)) is None
    assert AtenRanges().beyond(last(lambda a: a * a, SHORT.short())) == (
        "its integers may be as large as 1,073,741,824, and the device has 16,777,215"
    )
    assert AtenRanges().beyond(last(lambda a: a + a, SHORT.short())) is None
    for function in (lambda a: a**3, lambda a: a.square(), lambda a: a @ a.t(), lambda a: torch.addcmul(a, a, a)):
        assert AtenRanges().beyond(last(function, SHORT.short())) is not None
