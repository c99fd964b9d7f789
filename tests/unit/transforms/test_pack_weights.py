"""Which products of weights of few bits are divided by the digits of words, and that the results stay right."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from xdsl.dialects.builtin import IntegerAttr

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.loop import DIGITS, NestOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import ops

Product = Callable[[Tensor, Tensor, Tensor], Tensor]


class Layer(nn.Module):
    """A function of an input, a weight of 8-bit integers, and its scale."""

    def __init__(self, function: Product, rows: int, columns: int, bits: int, scale: tuple[int, ...]) -> None:
        super().__init__()
        draw, least = torch.Generator().manual_seed(3), -(1 << bits - 1)
        self.function = function
        weight = torch.randint(least, -least, (rows, columns), dtype=torch.int8, generator=draw)
        self.register_buffer("weight", weight)
        self.register_buffer("scale", torch.rand(scale, generator=draw) / 64)
        self.weight: Tensor
        self.scale: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, self.weight, self.scale)


def by_row(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    return x @ (weight.float() * scale).to(x.dtype).t()


def by_group(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    rows, columns = weight.shape
    return x @ (weight.float().reshape(rows, -1, 32) * scale[:, :, None]).reshape(rows, columns).to(x.dtype).t()


def stored_by_columns(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    return x @ weight.to(x.dtype) * scale[0]


def read_twice(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    return x @ weight.to(x.dtype).t() * scale[0] + (weight.to(x.dtype) * x[:1]).sum(1)


def of_some_columns(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    return x @ weight.to(x.dtype)[:128].t() * scale[0]


def two_products(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    return x @ weight.to(x.dtype).t() * scale[0] + (x + 1) @ weight.to(x.dtype).t()


def digits(model: nn.Module, x: Tensor, **choices: object) -> list[int]:
    """The bits of the digits that the nests of a model's program are."""
    options = {"pack-weights": choices} if choices else {}
    modules = lower(import_program(model, (x,)).module, make_context(), options=options).modules
    noted = [op.attributes.get(DIGITS) for op in ops(modules["spyre.loop"], NestOp)]
    return [bits.value.data for bits in noted if isinstance(bits, IntegerAttr)]


def _x(columns: int) -> Tensor:
    return torch.randn(2, columns, generator=torch.Generator().manual_seed(1)).half()


@pytest.mark.parametrize(
    ("function", "rows", "columns", "bits", "scale", "wanted"),
    [
        (by_row, 256, 256, 8, (256, 1), [8] * 4),
        (by_group, 512, 256, 4, (512, 8), [4] * 8),
        (by_group, 512, 256, 8, (512, 8), [8] * 4),
        (stored_by_columns, 256, 256, 8, (1,), [8] * 4),
        (by_row, 264, 256, 8, (264, 1), [8] * 4),  # words of columns would begin a stick with nothing
        (by_row, 262, 256, 8, (262, 1), [8] * 4),  # no whole words of columns
        (by_group, 128, 512, 4, (128, 16), [4] * 8),
        (by_group, 64, 8192, 8, (64, 256), [8] * 8),  # a long sum has words in blocks
    ],
)
def test_all_that_multiplies_a_weight_is_divided(
    function: Product, rows: int, columns: int, bits: int, scale: tuple[int, ...], wanted: list[int]
) -> None:
    model, x = Layer(function, rows, columns, bits, scale), _x(columns)
    assert digits(model, x) == wanted
    program = spyre_mlir.compile(model, (x,), host_fallback="error")
    assert isinstance(program, CompiledModel)
    expected = function(x.double(), model.weight, model.scale.double())
    assert float((program(x).double() - expected).abs().max() / expected.abs().max()) < 5e-3


@pytest.mark.parametrize(
    ("function", "rows", "columns", "scale"),
    [
        (read_twice, 256, 256, (1,)),  # the sum would need it as DL16, beside the words
        (two_products, 256, 256, (1,)),  # one conversion is read twice
        (of_some_columns, 256, 256, (1,)),  # digits of the others would be sent for nothing
        (by_row, 258, 256, (258, 1)),  # no whole words of columns, and their last stick would begin with nothing
        (
            by_row,
            264,
            352,
            (264, 1),
        ),  # words of columns would begin a stick with nothing, those of the sum are no sticks
        (by_row, 248, 256, (248, 1)),  # small
    ],
)
def test_others_are_sent_as_dl16(function: Product, rows: int, columns: int, scale: tuple[int, ...]) -> None:
    assert digits(Layer(function, rows, columns, 8, scale), _x(columns)) == []


def test_eight_bits_are_taken_where_four_save_no_byte() -> None:
    """A digit of 32 columns takes a stick, as one of 64 does."""
    assert digits(Layer(by_group, 256, 256, 4, (256, 8)), _x(256)) == [8] * 4


def parts(model: nn.Module, x: Tensor) -> list[tuple[int, ...]]:
    """The shapes of the digits of a model's program."""
    modules = lower(import_program(model, (x,)).module, make_context()).modules
    return [shape_of(op.result) for op in ops(modules["spyre.loop"], NestOp) if DIGITS in op.attributes]


def test_digits_are_parts_of_the_sum_where_these_are_whole_sticks_and_groups() -> None:
    assert parts(Layer(by_row, 512, 256, 8, (512, 1)), _x(256)) == [(512, 64)] * 4
    assert parts(Layer(by_row, 512, 288, 8, (512, 1)), _x(288)) == [(128, 288)] * 4
    assert parts(Layer(by_group, 256, 1024, 4, (256, 32)), _x(1024)) == [(256, 128)] * 8
    assert parts(Layer(by_group, 512, 256, 4, (512, 8)), _x(256)) == [(64, 256)] * 8


def test_a_long_sum_has_words_in_blocks_that_a_core_has_room_for() -> None:
    assert parts(Layer(by_row, 64, 8192, 8, (64, 1)), _x(8192)) == [(64, 1024)] * 8


def test_an_option_turns_it_off() -> None:
    assert digits(Layer(by_row, 256, 256, 8, (256, 1)), _x(256), enabled=False) == []
