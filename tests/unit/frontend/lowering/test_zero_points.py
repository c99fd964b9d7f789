"""Zero points that are zero are left out; what else reads them, or may change them, keeps them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.argument_notes import ZERO, note_of
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.frontend.lowering.zero_points import drop_zero_points, is_zero

Function = Callable[[Tensor, Tensor, Tensor], object]


class Quantized(nn.Module):
    """A function of an input, integers and their zero points."""

    def __init__(self, function: Function, zero: Tensor) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("weight", torch.arange(-8, 8, dtype=torch.int8).reshape(4, 4))
        self.register_buffer("zero", zero)
        self.weight: Tensor
        self.zero: Tensor

    def forward(self, x: Tensor) -> object:
        return self.function(x, self.weight, self.zero)


def imported(function: Function, zero: Tensor) -> tuple[list[str], object]:
    """The operators of a model, and the note on its zero points."""
    program = import_program(Quantized(function, zero), (torch.ones(4, 4).half(),))
    (main,) = (op for op in program.module.ops if isinstance(op, FuncOp))
    number = [a.name for a in program.arguments].index("zero")
    note = note_of(main, number, ZERO)
    ops = [op.overload for op in main.body.block.ops if isinstance(op, AtenOp)]
    assert (note is None) == bool(main.args[number].uses.get_length()), "a tensor with a note is read by nothing"
    return ops, note.data if isinstance(note, StringAttr) else None


ZEROS = torch.zeros(4, 1, dtype=torch.int8)


def by_row(x: Tensor, weight: Tensor, zero: Tensor) -> Tensor:
    return x @ (weight.half() - zero.half())


def as_integers(x: Tensor, weight: Tensor, zero: Tensor) -> Tensor:
    return x @ (weight - zero).half()


def by_group(x: Tensor, weight: Tensor, zero: Tensor) -> Tensor:
    return x @ (weight.reshape(2, 2, 4).half() - zero.reshape(2, 2, 1).half()).reshape(4, 4)


@pytest.mark.parametrize(
    ("function", "kind"),
    [(by_row, torch.int8), (by_row, torch.int64), (as_integers, torch.int8), (by_group, torch.int8)],
)
def test_differences_of_zeros_are_left_out(function: Function, kind: torch.dtype) -> None:
    ops, note = imported(function, ZEROS.to(kind))
    assert note == "aten.sub.Tensor"
    assert "sub.Tensor" not in ops and "_to_copy" in ops


@pytest.mark.parametrize("zero", [ZEROS + 1, ZEROS.half(), torch.tensor([[0], [0], [0], [3]], dtype=torch.int8)])
def test_other_numbers_are_subtracted(zero: Tensor) -> None:
    """Zeros that are floats are a bias as likely as a zero point."""
    ops, note = imported(by_row, zero)
    assert note is None and "sub.Tensor" in ops


def read_otherwise(x: Tensor, weight: Tensor, zero: Tensor) -> Tensor:
    return by_row(x, weight, zero) + zero.half()


def given_back(x: Tensor, weight: Tensor, zero: Tensor) -> tuple[Tensor, Tensor]:
    return by_row(x, weight, zero), zero + 1


def repeated(x: Tensor, weight: Tensor, zero: Tensor) -> Tensor:
    return x @ (weight[0].half() - zero.half())


def subtracted_from(x: Tensor, weight: Tensor, zero: Tensor) -> Tensor:
    return x @ (zero.half() - weight.half())


def changed(x: Tensor, weight: Tensor, zero: Tensor) -> Tensor:
    made = by_row(x, weight, zero)
    zero.add_(1)
    return made


@pytest.mark.parametrize("function", [read_otherwise, given_back, repeated, subtracted_from, changed])
def test_differences_that_are_more_than_their_tensor_stay(function: Function) -> None:
    ops, note = imported(function, ZEROS.clone())
    assert note is None and "sub.Tensor" in ops


def test_numbers_that_are_not_there_are_not_zero() -> None:
    assert is_zero(ZEROS)
    assert not any(map(is_zero, (None, ZEROS.to("meta"), torch.empty(0, dtype=torch.int8), ZEROS.bool())))


def test_nothing_is_left_out_without_zeros() -> None:
    program = import_program(Quantized(by_row, ZEROS + 1), (torch.ones(4, 4).half(),))
    (main,) = (op for op in program.module.ops if isinstance(op, FuncOp))
    assert drop_zero_points(main.body.block, [], bool) == {}
