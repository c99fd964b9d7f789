"""Tools to write masks into the graph of a piece: which dimensions have one, and calls in front of another call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import torch
from torch.fx import Graph, Node

from spyre_mlir.frontend.data_sizes.equal_sizes import size_expression

aten = torch.ops.aten


@dataclass(frozen=True)
class Masking:
    """Writes calls that tell the elements of a call from padding.

    Attributes:
        graph: which is changed.
        of: the placeholders of masks, by the symbols whose places they tell apart.
        counts: the placeholders of the sizes as tensors, by symbol.
        checks: truth values that say whether the program stands for a call, found so far.
        bounds: the sizes that the program is compiled for, by symbol.
        least: the least sizes that the program is proved for, where constants are others for smaller ones, by symbol.
        counted: numbers of places that constants count, which would be one with those of a size that is the same.
    """

    graph: Graph
    of: Mapping[Any, Node]
    counts: Mapping[Any, Node]
    checks: list[Node] = field(default_factory=list[Node])
    bounds: Mapping[Any, int] = field(default_factory=dict[Any, int])
    least: dict[Any, int] = field(default_factory=dict[Any, int])
    counted: set[int] = field(default_factory=set[int])

    def sized(self, value: object, dims: Sequence[int] | None = None) -> dict[int, Any]:
        """Return those of some dimensions of a value that have a mask, with their symbols; None stands for all."""
        shape = shape_of_node(value)
        dims = range(len(shape)) if dims is None else dims
        found = {dim % len(shape): symbol_of(shape[dim]) for dim in dims} if shape else {}
        return {dim: symbol for dim, symbol in found.items() if symbol in self.of}

    def filled(self, node: Node, value: Node, sized: Mapping[int, Any], number: float) -> Node:
        """Return a value with a number in its padding."""
        rank, known = len(shape_of_node(value)), value.meta["val"]
        filler = of_type(number, known.dtype)
        for dim, symbol in sized.items():
            mask = self.spread(node, symbol, rank - 1 - dim)
            value = self.before(node, aten.where.ScalarOther, mask, value, filler)
            value.meta["val"] = known
        return value

    def spread(self, node: Node, symbol: Any, dims: int) -> Node:
        """Return a mask with more dimensions behind its own."""
        mask = self.of[symbol]
        for _ in range(dims):
            mask = self.before(node, aten.unsqueeze.default, mask, -1)
        return mask

    def masked(self, node: Node, truth: Node, sized: Mapping[int, Any], rank: int) -> Node:
        """Return truth values that are false in padding."""
        for dim, symbol in sized.items():
            truth = self.before(node, aten.logical_and.default, truth, self.spread(node, symbol, rank - 1 - dim))
        return truth

    def places(self, node: Node, extent: object) -> Node:
        """Return the numbers of the places along a dimension."""
        symbol = symbol_of(extent)
        if symbol in self.of:
            return self.numbers(node, symbol)
        if isinstance(extent, int):
            self.counted.add(extent)
        return self.before(node, aten.arange.default, extent)

    def numbers(self, node: Node, symbol: Any) -> Node:
        """Return the numbers of the places along a size, those of padding among them."""
        return self.before(node, aten.arange.default, self.before(node, aten.sym_size.int, self.of[symbol], 0))

    def count(self, node: Node, symbol: Any, dtype: torch.dtype) -> Node:
        """Return a size as a tensor."""
        return self.before(node, aten.to.dtype, self.counts[symbol], dtype)

    def before(self, node: Node, target: Callable[..., Any], *args: Any, **kwargs: Any) -> Node:
        """Write a call in front of another one, at the same line of the model."""
        with self.graph.inserting_before(node):
            made = self.graph.call_function(target, args, kwargs)
        made.meta = {name: value for name, value in node.meta.items() if name != "val"}
        return made


def of_type(number: float, dtype: torch.dtype) -> float:
    """Return a number of a type: of integers, of 32 bits at most on the device, the last one for an infinity."""
    if dtype.is_floating_point:
        return number
    if dtype is torch.bool:
        return number > 0
    limits, wide = torch.iinfo(dtype), torch.iinfo(torch.int32)
    return int(min(max(number, limits.min, wide.min), limits.max, wide.max))


def replace(node: Node, made: Node) -> None:
    """Let the readers of a call read another one, and remove it."""
    made.meta["val"] = node.meta["val"]
    node.replace_all_uses_with(made)
    node.graph.erase_node(node)


def replace_results(node: Node, made: Sequence[Node]) -> None:
    """Let the readers of a call's results read others, and remove it."""
    for reader in list(node.users):
        replace(reader, made[cast(int, reader.args[1])])
    node.graph.erase_node(node)


def argument_of(node: Node, name: str) -> Any:
    """Return an argument of a call by its name in the schema; its default if the call does not give it."""
    arguments = cast(Any, node.target)._schema.arguments
    names = [argument.name for argument in arguments]
    if name not in names:
        return None
    place = names.index(name)
    return node.args[place] if place < len(node.args) else node.kwargs.get(name, arguments[place].default_value)


def reduced_dims(node: Node) -> tuple[int, ...]:
    """Return the dimensions of its first argument that a call reduces, by its schema; all if it names none."""
    dims = argument_of(node, "dim")
    if isinstance(dims, int):
        return (dims,)
    listed = tuple(cast("Sequence[int]", dims or ()))
    return listed or tuple(range(len(shape_of_node(node.args[0]))))


def shape_of_node(value: object) -> Sequence[object]:
    """Return the shape of what a node gives; empty for what is no tensor."""
    known = value.meta.get("val") if isinstance(value, Node) else None
    return tuple(map(_plain, known.shape)) if isinstance(known, torch.Tensor) else ()


def _plain(extent: object) -> object:
    """An extent; the number that a program says it is."""
    expression: Any = size_expression(extent) if isinstance(extent, torch.SymInt) else None
    return int(expression) if expression is not None and expression.is_number else extent


def symbol_of(extent: object) -> Any:
    """Return the symbol that an extent is, or the expression of symbols; None if it is a number."""
    expression: Any = size_expression(extent) if isinstance(extent, torch.SymInt) else None
    return None if expression is None or expression.is_number else _usual(expression)


@cache
def _usual(expression: Any) -> Any:
    """One expression for all that are equal for sizes above 0, as `Max(0, u0 - 1)` and `u0 - 1` are."""
    symbols = list(expression.free_symbols)
    less = {s: type(s)(f"{s}_less", integer=True, nonnegative=True) for s in symbols}
    above = expression.subs({s: less[s] + 1 for s in symbols})
    return above.subs({less[s]: s - 1 for s in symbols})
