"""Masks for a piece that runs on padded tensors: what a call reads behind the elements of the caller changes nothing.

A mask has a truth value for each place along a size that data decides, true for the elements of the call. In front of
a reduction along this size, the other places get a number that the reduction takes in without a change. Where the size
itself is a number of the program, as the divisor of a mean is, it becomes a tensor of one element. Whether that is
enough, the proof of a bucket says.

Decision: docs/decisions/0192-a-bound-stands-for-sizes-that-data-decides.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf, prod
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.data_sizes.masked import (
    losses,
    ordered,
    resized,
    sized_groups,
    sized_lookups,
    sized_numbers,
    sized_pairs,
    sized_reads,
    sized_windows,
    sized_writes,
)
from spyre_mlir.frontend.data_sizes.masked.masking import (
    Masking,
    argument_of,
    reduced_dims,
    replace,
    shape_of_node,
)

aten = torch.ops.aten

# Reductions along dimensions that an argument names, and the number that each takes in without a change.
_REDUCTIONS: dict[object, float] = {
    aten.sum.default: 0.0,
    aten.sum.dim_IntList: 0.0,
    aten.linalg_vector_norm.default: 0.0,
    aten.norm.Scalar: 0.0,
    aten.norm.ScalarOpt_dim: 0.0,
    aten.any.default: 0.0,
    aten.any.dim: 0.0,
    aten.any.dims: 0.0,
    aten.all.default: 1.0,
    aten.all.dim: 1.0,
    aten.all.dims: 1.0,
    aten.amax.default: -inf,
    aten.max.default: -inf,
    aten.softmax.int: -inf,
    aten._softmax.default: -inf,
    aten.log_softmax.int: -inf,
    aten._log_softmax.default: -inf,
    aten.logsumexp.default: -inf,
    aten.logcumsumexp.default: -inf,
    aten.amin.default: inf,
    aten.min.default: inf,
}
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


@dataclass(frozen=True)
class Masks(Masking):
    """Puts masks into the graph of a piece."""

    def put(self) -> bool:
        """Put masks in front of calls that read padding, and tensors for the sizes; return if there are some."""
        calls = [node for node in self.graph.nodes if node.op == "call_function"]
        return sum(_HANDLERS[node.target](self, node) for node in calls if node.target in _HANDLERS) > 0

    def return_checks(self) -> None:
        """Give what was checked as one more result of the graph."""
        (output,) = self.graph.find_nodes(op="output")
        stands, *others = self.checks
        for check in others:
            stands = self.before(output, aten.logical_and.default, stands, check)
        output.args = ((*cast("tuple[Node, ...]", output.args[0]), stands),)


Handler = Callable[[Masking, Node], bool]


def _fill(masking: Masking, node: Node, place: int, sized: Mapping[int, Any], number: float) -> bool:
    """Put a number into the padding of an argument."""
    if sized:
        node.update_arg(place, masking.filled(node, cast(Node, node.args[place]), sized, number))
    return bool(sized)


def _reduction(masking: Masking, node: Node) -> bool:
    return _fill(masking, node, 0, masking.sized(node.args[0], reduced_dims(node)), _REDUCTIONS[node.target])


def _product(masking: Masking, node: Node) -> bool:
    place = _PRODUCTS[node.target]
    return _fill(masking, node, place, masking.sized(node.args[place], (-1,)), 0.0)


def _mean(masking: Masking, node: Node) -> bool:
    if (count := _number_reduced(masking, node)) is None:
        return False
    keep = bool(argument_of(node, "keepdim"))
    replace(node, _quotient(masking, node, _total(masking, node, cast(Node, node.args[0]), keep), count))
    return True


def _spread(masking: Masking, node: Node, *, root: bool) -> bool:
    """Write out a variance, or its root."""
    if (count := _number_reduced(masking, node)) is None:
        return False
    value, correction = cast(Node, node.args[0]), argument_of(node, "correction")
    write = partial(masking.before, node)
    mean = _quotient(masking, node, _total(masking, node, value, keep=True), count)
    apart = write(aten.sub.Tensor, value, mean)
    square = write(aten.mul.Tensor, apart, apart)
    square.meta["val"] = value.meta["val"]
    total = _total(masking, node, square, bool(argument_of(node, "keepdim")))
    symbol, others = count
    number = write(aten.mul.Scalar, masking.count(node, symbol, node.meta["val"].dtype), others)
    number = write(aten.sub.Scalar, number, 1 if correction is None else correction)
    total = write(aten.div.Tensor, total, write(aten.clamp.default, number, 0))
    replace(node, write(aten.sqrt.default, total) if root else total)
    return True


def _number_reduced(masking: Masking, node: Node) -> tuple[Any, int] | None:
    """The size, and the number of elements for each, that a call reduces; None if there is not one size."""
    shape = shape_of_node(node.args[0])
    dims = {dim % len(shape) for dim in reduced_dims(node)}
    sized = masking.sized(node.args[0], tuple(dims))
    rest = [extent for dim in dims - set(sized) if isinstance(extent := shape[dim], int)]
    return (next(iter(sized.values())), prod(rest)) if len(sized) == 1 and len(rest) == len(dims) - 1 else None


def _total(masking: Masking, node: Node, value: Node, keep: bool) -> Node:
    """The sum of the elements of the caller along the dimensions that a call reduces."""
    filled = masking.filled(node, value, masking.sized(value, reduced_dims(node)), 0.0)
    dims = list(reduced_dims(node))
    return masking.before(node, aten.sum.dim_IntList, filled, dims, keep, dtype=node.kwargs.get("dtype"))


def _quotient(masking: Masking, node: Node, total: Node, count: tuple[Any, int]) -> Node:
    symbol, others = count
    mean = masking.before(node, aten.div.Tensor, total, masking.count(node, symbol, node.meta["val"].dtype))
    return mean if others == 1 else masking.before(node, aten.div.Scalar, mean, others)


def _attention(masking: Masking, node: Node) -> bool:
    """Hide padded keys from attention, whose mask says which keys a query sees."""
    sized = masking.sized(node.args[1], (-2,))
    if not sized or argument_of(node, "is_causal"):
        return False
    (symbol,) = sized.values()
    mask = masking.before(node, aten.unsqueeze.default, masking.of[symbol], 0)
    given = argument_of(node, "attn_mask")
    if isinstance(given, Node):
        added = given.meta["val"].is_floating_point()
        mask = masking.before(node, aten.where.ScalarOther, mask, given, -inf if added else False)
    node.args = (*node.args[:3], mask, *node.args[4:])
    node.kwargs = {name: given for name, given in node.kwargs.items() if name != "attn_mask"}
    return True


_HANDLERS: dict[object, Handler] = {
    **dict.fromkeys(_REDUCTIONS, _reduction),
    **dict.fromkeys(_PRODUCTS, _product),
    **dict.fromkeys((aten.mean.default, aten.mean.dim), _mean),
    aten.var.correction: partial(_spread, root=False),
    aten.std.correction: partial(_spread, root=True),
    **dict.fromkeys(sized_numbers.WITH_NUMBERS, sized_numbers.computed_with),
    aten.masked_fill.Scalar: sized_numbers.filled_with,
    **dict.fromkeys(ordered.SORTS, ordered.sort),
    **dict.fromkeys(ordered.EXTREMES, ordered.extreme),
    aten.topk.default: ordered.topk,
    aten.kthvalue.default: ordered.kthvalue,
    aten.median.dim: ordered.median,
    aten.median.default: ordered.median_of_all,
    **dict.fromkeys(sized_writes.SUMS, sized_writes.add),
    **dict.fromkeys((aten.scatter.src, aten.scatter.value), sized_writes.scatter),
    **dict.fromkeys((aten.index_fill.int_Scalar, aten.index_fill.int_Tensor), sized_writes.fill_rows),
    aten.index_copy.default: sized_writes.copy_rows,
    aten.index_put.default: sized_writes.put,
    aten.masked_scatter.default: sized_writes.scatter_by_mask,
    **dict.fromkeys(sized_reads.BY_INDEX, sized_reads.read_by_index),
    aten.index.Tensor: sized_lookups.read,
    aten.gather.default: sized_reads.gather,
    aten.select.int: sized_reads.select_from_end,
    aten.flip.default: sized_reads.flip,
    aten.roll.default: sized_reads.roll,
    aten.scaled_dot_product_attention.default: _attention,
    **dict.fromkeys(losses.OF_CLASSES, losses.of_classes),
    aten.histc.default: losses.histogram,
    aten.cat.default: resized.cat,
    aten.constant_pad_nd.default: resized.pad,
    aten.slice.Tensor: resized.cut,
    aten.split_with_sizes.default: resized.split,
    aten.slice_scatter.default: resized.write_slice,
    **dict.fromkeys(resized.PRODUCTS, resized.product),
    **dict.fromkeys(resized.MERGING, sized_pairs.merge),
    **dict.fromkeys(sized_windows.CONVOLUTIONS, sized_windows.convolution),
    **dict.fromkeys((aten.max_pool2d.default, aten.avg_pool1d.default, aten.avg_pool2d.default), sized_windows.pool),
    aten.unfold.default: sized_windows.unfold,
    **dict.fromkeys(sized_groups.BAGS, sized_groups.bag),
    **dict.fromkeys(sized_groups.POOLS, sized_groups.pool),
    aten.segment_reduce.default: sized_groups.segments,
}
