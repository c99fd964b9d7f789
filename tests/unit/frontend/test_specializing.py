"""Static programs of programs with symbols are those that a static export gives."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch.export import Dim

from spyre_mlir.dialects.aten_sizes import SizeAttr
from spyre_mlir.frontend.importer import import_program
from spyre_mlir.frontend.program.program import Program, TreeConstant
from spyre_mlir.frontend.specializing import static_program
from spyre_mlir.frontend.weights.binding import bind
from spyre_mlir.text.render import module_text
from tests.functions import FunctionModel


class Attention(nn.Module):
    """A causal mask and positions, which the import computes, a buffer, a split, and a number among the results."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Linear(8, 24)
        self.rate: torch.Tensor
        self.register_buffer("rate", torch.tensor([1.0, 0.5]), persistent=False)

    def forward(self, x: torch.Tensor) -> Any:
        length = x.shape[1]
        q, k, v = self.mix(x).split(8, dim=-1)
        turns = (torch.arange(length)[:, None] * self.rate).sin().repeat(1, 4)
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        return nn.functional.scaled_dot_product_attention(q * turns, k, v, mask), length + 1


MODEL = Attention().eval()


class Turns(nn.Module):
    """A table that follows from a buffer alone, one that repeats it, and one that follows from it and the length."""

    def __init__(self) -> None:
        super().__init__()
        self.rate: torch.Tensor
        self.register_buffer("rate", torch.tensor([1.0, 0.5, 0.25]), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        table = self.rate.cos()
        turns = (torch.arange(x.shape[1])[:, None] * table).sin()
        return x * turns + x * table + x.new_ones(2, 1, 3) * table.expand(2, 1, 3)


TURNS = Turns().eval()


def program(*args: Any, shapes: Any = None) -> Program:
    return import_program(torch.export.export(MODEL, args, dynamic_shapes=shapes))


def static(symbolic: Program, **sizes: int) -> Program:
    # The pass is of another package; its work is short for one program.
    from spyre_mlir.transforms.specialize_shapes import SpecializeShapesPass
    from spyre_mlir.universe import make_context

    module = symbolic.module.clone()
    SpecializeShapesPass(sizes).apply(make_context(), module)
    return static_program(symbolic, module, sizes)


@cache
def attention() -> Program:
    return program(torch.ones(2, 5, 8), shapes=({1: Dim("length", min=2, max=64)},))


def test_the_text_has_symbols() -> None:
    text = module_text(attention().module)
    assert "aten.symbols = {s0 = array<i64: 2, 64>}" in text
    assert 'tensor<2x?x8xf32, #aten.extents<"s0">>' in text
    assert attention().output_leaves[1] == TreeConstant("output.1", SizeAttr("s0 + 1"))


@pytest.mark.parametrize("length", [2, 5, 33])
def test_the_program_is_that_of_a_static_export(length: int) -> None:
    found, expected = static(attention(), s0=length), program(torch.ones(2, length, 8))
    assert module_text(found.module) == module_text(expected.module)
    assert found.arguments == expected.arguments
    assert found.input_leaves == expected.input_leaves
    assert found.output_leaves == expected.output_leaves == (0, TreeConstant("output.1", length + 1))
    for name, value in expected.values.items():
        assert torch.equal(found.values[name], value)


def test_weights_are_shared() -> None:
    first, second = static(attention(), s0=7), static(attention(), s0=9)
    assert first.values["mix.weight"].data_ptr() == second.values["mix.weight"].data_ptr()


def test_a_static_program_is_refused() -> None:
    plain = program(torch.ones(2, 5, 8))
    with pytest.raises(ValueError, match="has no symbols"):
        static_program(plain, plain.module, {})


def turns(model: Turns, length: int, *, symbolic: bool) -> Program:
    shapes = ({1: Dim("length", min=2, max=64)},) if symbolic else None
    return import_program(model, (torch.ones(2, length, 3, device=model.rate.device),), None, shapes)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_constants_that_follow_from_buffers_are_those_of_a_static_export(device: str) -> None:
    model = Turns().eval().to(device)
    found, expected = static(turns(model, 5, symbolic=True), s0=7), turns(model, 7, symbolic=False)
    assert module_text(found.module) == module_text(expected.module)
    assert found.values.keys() == expected.values.keys()
    assert found.recipes.keys() == expected.recipes.keys()
    for name, value in expected.values.items():
        assert torch.equal(found.values[name], value)


def test_a_program_with_symbols_takes_weights_later() -> None:
    bound = bind(turns(Turns().eval().to("meta"), 5, symbolic=True), {}, TURNS)
    found, expected = static(bound, s0=7), turns(TURNS, 7, symbolic=False)
    assert found.values.keys() == expected.values.keys()
    for name, value in expected.values.items():
        assert torch.equal(found.values[name], value)


def test_a_specialised_program_takes_weights_later() -> None:
    found = bind(static(turns(Turns().eval().to("meta"), 5, symbolic=True), s0=7), {}, TURNS)
    expected = turns(TURNS, 7, symbolic=False)
    assert found.values.keys() == expected.values.keys()
    for name, value in expected.values.items():
        assert torch.equal(found.values[name], value)


def rows_of_slices(x: torch.Tensor) -> Any:
    return scan(lambda c, row: (c * 0.5 + row, (c - row).reshape(2 * row.shape[0], 4)), x[0] * 2, x, dim=0)


def slices_of_slices(x: torch.Tensor) -> Any:
    def outer(c: torch.Tensor, rows: torch.Tensor) -> Any:
        return scan(lambda c, row: (c * 0.5 + row, torch.sin(c)), c, rows.repeat(9, 1, 1).clone(), dim=0)

    return scan(outer, x[0] * 2, x, dim=0)


@pytest.mark.parametrize(("model", "loops"), [(rows_of_slices, 1), (slices_of_slices, 2)])
def test_a_loop_over_slices_is_that_of_a_static_export(model: Any, loops: int) -> None:
    shapes = (({1: Dim("rows", min=2, max=64)},),)
    symbolic = import_program(FunctionModel(model), (torch.ones(9, 5, 8),), None, shapes)
    expected = import_program(FunctionModel(model), (torch.ones(9, 3, 8),))
    assert module_text(expected.module).count("control.for_loop") == loops
    found = static(symbolic, s0=3)
    assert module_text(found.module) == module_text(expected.module)
    assert [str(op.location) for op in found.module.walk()] == [str(op.location) for op in expected.module.walk()]


class Growing(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([torch.tensor([]), x], 1) * 2


def test_a_constant_without_elements_is_that_of_a_static_export() -> None:
    """As a growing cache of transformers begins with."""
    rows = Dim("rows", max=64)
    symbolic = import_program(Growing(), (torch.ones(4, 64),), dynamic_shapes=({0: rows},))
    made = static(symbolic, s0=5)
    assert module_text(made.module) == module_text(import_program(Growing(), (torch.ones(5, 64),)).module)
