"""Masks for a piece that runs on padded tensors: what a reduction reads behind the elements of a call changes nothing.

A mask has a truth value for each place along a size that data decides, true for the elements of the call. In front of
a reduction along this size, the other places get a number that the reduction takes in without a change. Where the size
itself is a number of the program, as the divisor of a mean is, it becomes a tensor of one element. Whether that is
enough, the proof of a bucket says.

Decision: docs/decisions/0192-a-bound-stands-for-sizes-that-data-decides.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Any, cast

import torch
from torch.fx import Graph, Node

from spyre_mlir.frontend.data_sizes.counted_sorts import CountedSort, take_results
from spyre_mlir.frontend.torch_private import expression_of

aten = torch.ops.aten

# Reductions along dimensions that an argument names, and the number that each takes in without a change.
_REDUCTIONS: dict[object, float] = {
    aten.sum.default: 0.0,
    aten.sum.dim_IntList: 0.0,
    aten.linalg_vector_norm.default: 0.0,
    aten.norm.Scalar: 0.0,
    aten.norm.ScalarOpt_dim: 0.0,
    aten.amax.default: -inf,
    aten.max.default: -inf,
    aten.max.dim: -inf,
    aten.argmax.default: -inf,
    aten.softmax.int: -inf,
    aten._softmax.default: -inf,
    aten.log_softmax.int: -inf,
    aten._log_softmax.default: -inf,
    aten.logsumexp.default: -inf,
    aten.amin.default: inf,
    aten.min.default: inf,
    aten.min.dim: inf,
    aten.argmin.default: inf,
}
_MEANS = frozenset({aten.mean.default, aten.mean.dim})
_PRODUCTS: dict[object, int] = {
    aten.mm.default: 0,
    aten.bmm.default: 0,
    aten.mv.default: 0,
    aten.dot.default: 0,
    aten.matmul.default: 0,
    aten.linear.default: 0,
    aten.addmm.default: 1,
    aten.baddbmm.default: 1,
}
_ADDED_ROWS: dict[object, int] = {aten.index_add.default: 3, aten.scatter_add.default: 3}
# Operators whose second argument may be a size.
_WITH_NUMBER = frozenset({aten.div.Tensor, aten.mul.Tensor, aten.add.Tensor, aten.sub.Tensor})
_PLACES_OF_SORTS = frozenset({aten.argsort.default, aten.argsort.stable})
_SORTS = _PLACES_OF_SORTS | {aten.sort.default, aten.sort.stable}
_ATTENTION = aten.scaled_dot_product_attention.default


@dataclass(frozen=True)
class Masks:
    """Puts masks into the graph of a piece.

    Attributes:
        graph: which is changed.
        of: the placeholders of masks, by the symbols whose places they tell apart.
        counts: the placeholders of the sizes as tensors, by symbol.
    """

    graph: Graph
    of: Mapping[Any, Node]
    counts: Mapping[Any, Node]

    def put(self) -> bool:
        """Put masks in front of reductions along these sizes, and tensors for the sizes; return if there are some."""
        calls = [node for node in self.graph.nodes if node.op == "call_function"]
        return sum(map(self._put, calls)) > 0

    def _put(self, node: Node) -> bool:
        target: Any = node.target
        if target in _REDUCTIONS:
            return self._fill(node, 0, self._sized(node.args[0], reduced_dims(node)), _REDUCTIONS[target])
        if target in _MEANS:
            return self._mean(node)
        if target in _PRODUCTS:
            place = _PRODUCTS[target]
            return self._fill(node, place, self._sized(node.args[place], (-1,)), 0.0)
        if target in _ADDED_ROWS:
            place = _ADDED_ROWS[target]
            return self._fill(node, place, self._sized(node.args[place], (cast(int, node.args[1]),)), 0.0)
        if target in _WITH_NUMBER:
            return self._with_count(node)
        if target in _SORTS:
            return self._sort(node)
        return target is _ATTENTION and self._attention(node)

    def _sized(self, value: object, dims: Sequence[int]) -> dict[int, Any]:
        """Those of some dimensions of a value that have a mask, with their symbols."""
        shape = _shape(value)
        found = {dim % len(shape): _symbol(shape[dim]) for dim in dims} if shape else {}
        return {dim: symbol for dim, symbol in found.items() if symbol in self.of}

    def _fill(self, node: Node, place: int, sized: Mapping[int, Any], number: float) -> bool:
        """Put a number into the padding of an argument; integers have no infinity."""
        value = cast(Node, node.args[place])
        if not sized or (number and not value.meta["val"].is_floating_point()):
            return False
        node.update_arg(place, self._filled(node, value, sized, number))
        return True

    def _filled(self, node: Node, value: Node, sized: Mapping[int, Any], number: float) -> Node:
        rank, known = len(_shape(value)), value.meta["val"]
        filler = number if known.is_floating_point() else torch.zeros((), dtype=known.dtype).item()
        for dim, symbol in sized.items():
            mask = self._spread(node, self.of[symbol], rank - 1 - dim)
            value = self._before(node, aten.where.ScalarOther, mask, value, filler)
        return value

    def _spread(self, node: Node, mask: Node, dims: int) -> Node:
        """A mask with more dimensions behind its own."""
        for _ in range(dims):
            mask = self._before(node, aten.unsqueeze.default, mask, -1)
        return mask

    def _mean(self, node: Node) -> bool:
        value, dims = cast(Node, node.args[0]), reduced_dims(node)
        sized, shape = self._sized(value, dims), _shape(value)
        rest = [shape[dim] for dim in {d % len(shape) for d in dims} - set(sized)]
        if not sized or not all(isinstance(extent, int) for extent in rest):
            return False
        filled = self._filled(node, value, sized, 0.0)
        keep = bool(_argument(node, "keepdim"))
        total = self._before(node, aten.sum.dim_IntList, filled, list(dims), keep, dtype=node.kwargs.get("dtype"))
        for symbol in sized.values():
            total = self._before(node, aten.div.Tensor, total, self._count(node, symbol))
        for extent in rest:
            total = self._before(node, aten.div.Scalar, total, extent)
        node.replace_all_uses_with(total)
        self.graph.erase_node(node)
        return True

    def _with_count(self, node: Node) -> bool:
        """Put a tensor in the place of a size that an operator computes with."""
        number = node.args[1]
        symbol = _symbol(number.meta.get("val")) if isinstance(number, Node) else None
        if symbol not in self.counts:
            return False
        node.update_arg(1, self._count(node, symbol))
        return True

    def _count(self, node: Node, symbol: Any) -> Node:
        return self._before(node, aten.to.dtype, self.counts[symbol], node.meta["val"].dtype)

    def _sort(self, node: Node) -> bool:
        """Count in the place of a sort."""
        value, given = cast(Node, node.args[0]), _argument(node, "dim")
        dim = -1 if given is None else cast(int, given)
        sized = self._sized(value, (dim,))
        if not sized:
            return False
        (symbol,) = sized.values()
        write, descending = partial(self._before, node), bool(_argument(node, "descending"))
        sort = CountedSort(write, self.of[symbol], value.meta["val"].dtype, descending)
        values, places = sort.results(write(aten.transpose.int, value, dim, -1))
        found = write(aten.transpose.int, values, dim, -1), write(aten.transpose.int, places, dim, -1)
        if node.target in _PLACES_OF_SORTS:
            node.replace_all_uses_with(found[1])
            self.graph.erase_node(node)
        else:
            take_results(node, found)
        return True

    def _attention(self, node: Node) -> bool:
        """Hide padded keys from attention, whose mask says which keys a query sees."""
        sized = self._sized(node.args[1], (-2,))
        if not sized or _argument(node, "is_causal"):
            return False
        (symbol,) = sized.values()
        mask = self._before(node, aten.unsqueeze.default, self.of[symbol], 0)
        given = _argument(node, "attn_mask")
        if isinstance(given, Node):
            added = given.meta["val"].is_floating_point()
            mask = self._before(node, aten.where.ScalarOther, mask, given, -inf if added else False)
        node.args = (*node.args[:3], mask, *node.args[4:])
        node.kwargs = {name: given for name, given in node.kwargs.items() if name != "attn_mask"}
        return True

    def _before(self, node: Node, target: Callable[..., Any], *args: Any, **kwargs: Any) -> Node:
        """Write a call in front of another one, at the same line of the model."""
        with self.graph.inserting_before(node):
            made = self.graph.call_function(target, args, kwargs)
        made.meta = {name: value for name, value in node.meta.items() if name != "val"}
        return made


def reduced_dims(node: Node) -> tuple[int, ...]:
    """Return the dimensions of its first argument that a call reduces, by its schema; all if it names none."""
    dims = _argument(node, "dim")
    if isinstance(dims, int):
        return (dims,)
    listed = tuple(cast("Sequence[int]", dims or ()))
    return listed or tuple(range(len(_shape(node.args[0]))))


def _argument(node: Node, name: str) -> object:
    """An argument of a call by its name in the schema; None if the call does not give it."""
    names = [argument.name for argument in cast(Any, node.target)._schema.arguments]
    place = names.index(name) if name in names else len(node.args)
    return node.args[place] if place < len(node.args) else node.kwargs.get(name)


def _shape(value: object) -> Sequence[object]:
    known = value.meta.get("val") if isinstance(value, Node) else None
    return tuple(known.shape) if isinstance(known, torch.Tensor) else ()


def _symbol(extent: object) -> Any:
    """The symbol that an extent is; None if it is a number or an expression."""
    expression: Any = expression_of(extent) if isinstance(extent, torch.SymInt) else None
    return expression if expression is not None and expression.is_Symbol else None
