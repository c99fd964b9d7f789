"""Symbols of exported programs: names, ranges, and sizes in them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim, ExportedProgram

import spyre_mlir
from spyre_mlir.dialects.aten_sizes import SizeAttr, SymbolRange
from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.frontend.symbolic.sizes import (
    Sizes,
    gives_number,
    is_symbolic_node,
    known_extent,
    same_shape,
    spell_expression,
)
from spyre_mlir.frontend.torch_private import expression_of


class Pairs(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor, n: int) -> Any:
        pairs = x.view(x.shape[0] // 2, 2, -1)
        return pairs.sum(1) * n, torch.cat([y, y]), y.exp(), torch.ones(3)


def exported() -> ExportedProgram:
    shapes: Any = ({0: 2 * Dim("half", min=3, max=20)}, {0: Dim("rows", max=50)}, Dim.DYNAMIC)
    return torch.export.export(Pairs(), (torch.ones(8, 4), torch.ones(6, 4), 5), dynamic_shapes=shapes)


EXPORTED = exported()
SIZES = Sizes.of(EXPORTED)
NODES = {node.name: node for node in EXPORTED.graph.nodes}


def test_symbols_are_numbered_in_the_order_of_the_inputs() -> None:
    assert list(SIZES.names.values()) == ["s0", "s1", "s2"]
    assert SIZES.extents(NODES["x"].meta["val"]) == ("2 * s0", 4)
    assert SIZES.extents(NODES["y"].meta["val"]) == ("s1", 4)
    assert SIZES.leaf(NODES["n"].meta["val"]) == SizeAttr("s2")


def test_an_extent_is_two_or_more_and_a_number_is_not() -> None:
    assert SIZES.ranges == {"s0": SymbolRange(3, 20), "s1": SymbolRange(2, 50), "s2": SymbolRange(0)}


def test_sizes_follow_from_symbols() -> None:
    assert str(SIZES.type_of(NODES["view"].meta["val"])) == 'tensor<?x2x4xf32, #aten.extents<"s0">>'
    assert SIZES.extents(NODES["cat"].meta["val"]) == ("2 * s1", 4)
    view = NODES["view"]
    assert SIZES.spelled(view.args[1]) == [SizeAttr("s0"), 2, -1]
    assert SIZES.spelled(view.args[0]) is view.args[0]


def test_what_depends_on_symbols() -> None:
    assert is_symbolic_node(NODES["exp"])
    assert is_symbolic_node(NODES["sym_size_int"]) or is_symbolic_node(NODES["floordiv"])
    assert not is_symbolic_node(NODES["ones"])
    assert gives_number(NODES["floordiv"])
    assert not gives_number(NODES["exp"])


def test_shapes_are_equal_for_all_values_of_symbols() -> None:
    x, y, exp = (NODES[name].meta["val"] for name in ("x", "y", "exp"))
    assert same_shape(y, exp)
    assert not same_shape(x, y)
    assert not same_shape(y, torch.ones(6, 4))
    assert same_shape(torch.ones(2, 3), torch.zeros(2, 3))
    assert not same_shape(torch.ones(2, 3), torch.zeros(2, 1, 3))


def test_a_function_without_a_form_is_named() -> None:
    symbol = expression_of(NODES["y"].meta["val"].shape[0])
    with pytest.raises(UnsupportedError, match="log has no form in sizes"):
        spell_expression(
            type("log", (), {"is_Symbol": False, "is_Integer": False, "is_Float": False, "args": [symbol]})(),
            SIZES.names,
        )


def test_a_static_program_has_no_symbols() -> None:
    static = torch.export.export(nn.ReLU(), (torch.ones(2),))
    assert Sizes.of(static) == Sizes()


def test_a_number_that_the_model_makes_static_is_a_number() -> None:
    """Torch keeps it as a symbolic number, though its argument must be what it was."""

    class Viewing(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor, n: int) -> Any:
            return x.sum() + y.view(2, n)

    shapes: Any = ({0: Dim.AUTO}, None, Dim.DYNAMIC)
    made = torch.export.export(Viewing(), (torch.ones(3, 4), torch.ones(2, 1), 1), dynamic_shapes=shapes)
    number = next(node for node in made.graph.nodes if node.name == "n").meta["val"]
    assert isinstance(number, torch.SymInt)
    leaf = Sizes.of(made).leaf(number)
    assert type(leaf) is int and leaf == 1


def test_a_size_that_torch_makes_static_is_a_number() -> None:
    """An operand of seven elements says what the size is."""

    class Shifted(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.ones(7)

    model, x = Shifted(), torch.arange(14.0).reshape(1, 2, 7)
    made = torch.export.export(model, (x,), dynamic_shapes=({2: Dim.AUTO},))
    extents = next(node for node in made.graph.nodes if node.name == "x").meta["val"].shape
    assert isinstance(extents[2], torch.SymInt)
    assert [known_extent(n) for n in extents] == [1, 2, 7]
    compiled = spyre_mlir.compile(model, (x,), dynamic_shapes=({2: Dim.AUTO},), numerics="exact")
    assert torch.equal(compiled(x), x + 1)
    with pytest.raises(InputError, match=r"expected float32\[1, 2, 7\], got float32\[1, 2, 6\]"):
        compiled(x[..., :6])
