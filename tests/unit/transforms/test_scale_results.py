"""Which scales of weights of few bits move behind their products, and that the results stay right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.loop import NestOp, body_function
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.frontend import import_program
from spyre_mlir.ops.native import pointwise
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import ops

ROWS, COLUMNS = 96, 128
Product = Callable[[Tensor, Tensor, Tensor], Tensor]


class Layer(nn.Module):
    """A function of an input, a weight of few bits, and its scale."""

    def __init__(self, function: Product, scale: tuple[int, ...], kind: torch.dtype) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(3)
        self.function = function
        self.register_buffer("weight", (torch.randn(ROWS, COLUMNS, generator=draw) * 9).to(kind))
        self.register_buffer("scale", torch.rand(scale, generator=draw) + 0.5)
        self.weight: Tensor
        self.scale: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x, self.weight, self.scale)


def by_row(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    return x @ (weight.float() * scale).half().t()


def by_group(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    wide = weight.float().reshape(ROWS, -1, 32) * scale[:, :, None]
    return x @ wide.reshape(ROWS, COLUMNS).half().t()


def rounded_again(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    return x @ (weight.float() * scale).to(torch.float8_e4m3fn).half().t()


def read_twice(x: Tensor, weight: Tensor, scale: Tensor) -> Tensor:
    wide = (weight.float() * scale).half()
    return x @ wide.t() + (wide * x[:1]).sum()


def scaled_shapes(
    function: Product, scale: tuple[int, ...], rows: int = 4, kind: torch.dtype = torch.float8_e4m3fn
) -> list[tuple[int, ...]]:
    """Shapes of what is multiplied element by element, in the program at the loop level."""
    program = import_program(Layer(function, scale, kind), (torch.zeros(rows, COLUMNS).half(),))
    module = lower(program.module, make_context(), until="spyre.loop").modules["spyre.loop"]
    nests = [nest for nest in ops(module, NestOp) if nest.combine is None]
    return [shape_of(nest.result) for nest in nests if body_function(nest.body.block) is pointwise.mul]


@pytest.mark.parametrize("scale", [(ROWS, 1), (1, 1), ()])
@pytest.mark.parametrize("kind", [torch.float8_e4m3fn, torch.int8])
def test_a_scale_of_rows_or_of_all_is_of_the_result(scale: tuple[int, ...], kind: torch.dtype) -> None:
    assert scaled_shapes(by_row, scale, kind=kind) == [(4, ROWS)]


@pytest.mark.parametrize(
    ("function", "scale"),
    [(by_row, (1, COLUMNS)), (by_group, (ROWS, 4)), (rounded_again, (ROWS, 1)), (read_twice, (ROWS, 1))],
)
def test_other_scales_stay(function: Product, scale: tuple[int, ...]) -> None:
    """Of summed columns, of groups of them, before the weight is rounded again, of a weight with another reader."""
    assert sorted(set(scaled_shapes(function, scale))) in ([(ROWS, COLUMNS)], [(ROWS, 4, 32)])


def test_a_scale_stays_where_the_result_is_larger_than_the_weight() -> None:
    assert scaled_shapes(by_row, (ROWS, 1), rows=COLUMNS) == [(COLUMNS, ROWS)]
    assert scaled_shapes(by_row, (ROWS, 1), rows=COLUMNS + 1) == [(ROWS, COLUMNS)]


@pytest.mark.parametrize("kind", [torch.float8_e4m3fn, torch.int8])
def test_results_are_those_of_double_precision(kind: torch.dtype) -> None:
    layer = Layer(by_row, (ROWS, 1), kind)
    x = torch.randn(4, COLUMNS, generator=torch.Generator().manual_seed(1)).half()
    compiled = spyre_mlir.compile(layer, (x,), host_fallback="error")
    assert isinstance(compiled, CompiledModel)
    assert compiled.verify(x)
    wanted = x.double() @ (layer.weight.double() * layer.scale.double()).t()
    np.testing.assert_allclose(compiled(x).double(), wanted, atol=3e-3 * float(wanted.abs().max()))
