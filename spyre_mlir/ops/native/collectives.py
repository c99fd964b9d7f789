"""Collectives: what the ranks of a group give each other, one process and one card a rank.

A call gives every rank a result that depends on the tensors of all. So calls are neither merged, moved past each
other, dropped, nor computed ahead: a rank that leaves one out, or swaps two, waits for ever or gets another tensor.

A meaning gets one tensor per rank of the group, in order, and one list per rank where an argument is a list of sizes;
it gives one result per rank. Every other argument is the same on all ranks. ``ranks`` is not torch's: the group by its
global ranks, as it was at import, which runs compare with the group of that name.

Decision: docs/decisions/0153-collectives-are-steps-of-the-host.md
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import ceil
from typing import cast

from spyre_mlir.ops.annotations import Ints, Lanes, Ranks, np
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.ignored_arguments import GROUP_NAME, GROUP_RANKS
from spyre_mlir.ops.table import Sample, require

Shape = tuple[int, ...]
NAMESPACE = "_c10d_functional"
# The same operators with derivatives; without a backward pass they mean the same.
DIFFERENTIATED = "_c10d_functional_autograd"
NAMES = ("all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single", "broadcast")
WAIT = "wait_tensor"
EXCHANGED = "ranks exchange tensors through the host"
RANKS = GROUP_RANKS.param.name  # argument of our own: global ranks of the group, in order
_COLLECTIVES = frozenset(f"{space}::{name}" for space in (NAMESPACE, DIFFERENTIATED) for name in NAMES)
_SEGMENT_BYTES = 2**20  # of gloo, `AllreduceOptions::kMaxSegmentSize`
# By the names of functions of numpy, which is imported when it is used.
_FOLDS = {
    "sum": "add",
    "avg": "add",
    "product": "multiply",
    "min": "minimum",
    "max": "maximum",
    "band": "bitwise_and",
    "bor": "bitwise_or",
    "bxor": "bitwise_xor",
}
REDUCTIONS = tuple(_FOLDS)  # of bits: of integers alone
GROUP = [GROUP_NAME, GROUP_RANKS]


def overloads(name: str) -> list[str]:
    """Return the overloads of a collective."""
    return [f"{NAMESPACE}::{name}", f"{DIFFERENTIATED}::{name}"]


def is_collective(overload: str) -> bool:
    """Return whether the ranks of a group call an operator together.

    Args:
        overload: ``.default`` dropped, with its namespace unless that is aten.
    """
    return overload in _COLLECTIVES


def _check_reduction(reduce_op: str) -> None:
    require("C1", reduce_op in REDUCTIONS, f"reduce_op is {reduce_op!r}, expected one of {', '.join(REDUCTIONS)}")


def _folded(tensors: Ranks, reduce_op: str) -> Lanes:
    """Fold in the order of gloo's ring: a part for each rank, from the rank before it downwards to itself."""
    fold, count = getattr(np, _FOLDS[reduce_op]), len(tensors)
    flat, each = [tensor.reshape(-1) for tensor in tensors], _elements_of_part(tensors[0], count)
    parts: list[Lanes] = []
    for rank in range(count):
        first, *others = (flat[(rank - 1 - n) % count][rank * each : (rank + 1) * each] for n in range(count))
        parts.append(reduce(fold, others, first))
    total = np.concatenate(parts).reshape(tensors[0].shape)
    return total / count if reduce_op == "avg" else total


def _elements_of_part(tensor: Lanes, count: int) -> int:
    """How many elements in a row gloo folds for one rank: a multiple of segments of 1 MB at most, at least two."""
    segments = max(ceil(tensor.nbytes / _SEGMENT_BYTES), 2 * count)
    each = ceil(segments / count)
    return each * ceil(ceil(tensor.nbytes / (each * count)) / tensor.itemsize)


def _check_count(constraint: str, ranks: int, group_size: int) -> None:
    require(constraint, ranks == group_size, f"group_size is {group_size}, and the group has {ranks} ranks")


def same_shape(input: Shape, **_: object) -> Shape:
    """The shape of the operand."""
    return input


def reduced_shape(input: Shape, *, reduce_op: str) -> Shape:
    """The shape of the operand, for a known reduction."""
    _check_reduction(reduce_op)
    return input


@ATEN.collective(aten=overloads("all_reduce"), shape=reduced_shape, ignores=GROUP)
def all_reduce(input: Ranks, *, reduce_op: str) -> Ranks:
    """The tensors of all ranks folded into one, which every rank gets.

    Constraints:
        C1: reduce_op is sum, avg, product, min, max, or one of bits: band, bor, bxor.
    """
    return [_folded(input, reduce_op)] * len(input)


def gathered_shape(input: Shape, *, group_size: int) -> Shape:
    """As many rows as all ranks have."""
    return (input[0] * group_size, *input[1:])


@ATEN.collective(aten=overloads("all_gather_into_tensor"), shape=gathered_shape, ignores=GROUP)
def all_gather_into_tensor(input: Ranks, *, group_size: int) -> Ranks:
    """The tensors of all ranks one after another along the first dimension, which every rank gets.

    Constraints:
        C1: the group has group_size ranks.
    """
    _check_count("C1", len(input), group_size)
    return [np.concatenate(input)] * len(input)


def scattered_shape(input: Shape, *, reduce_op: str, group_size: int) -> Shape:
    """The rows of one rank."""
    _check_reduction(reduce_op)
    require("C2", input[0] % group_size == 0, f"{input[0]} rows do not divide among {group_size} ranks")
    return (input[0] // group_size, *input[1:])


@ATEN.collective(aten=overloads("reduce_scatter_tensor"), shape=scattered_shape, ignores=GROUP)
def reduce_scatter_tensor(input: Ranks, *, reduce_op: str, group_size: int) -> Ranks:
    """The tensors of all ranks folded into one, of which every rank gets an equal part of the first dimension.

    Constraints:
        C1: reduce_op is sum, avg, product, min, max, or one of bits: band, bor, bxor.
        C2: the ranks divide the first dimension.
        C3: the group has group_size ranks.
    """
    _check_count("C3", len(input), group_size)
    return np.split(_folded(input, reduce_op), group_size)


def exchanged_shape(input: Shape, *, output_split_sizes: Ints, input_split_sizes: Ints) -> Shape:
    """As many rows as other ranks send."""
    rows = sum(input_split_sizes)
    require("C1", rows == input[0], f"the parts for the ranks have {rows} rows, and the tensor has {input[0]}")
    return (sum(output_split_sizes), *input[1:])


@ATEN.collective(aten=overloads("all_to_all_single"), shape=exchanged_shape, ignores=GROUP)
def all_to_all_single(input: Ranks, *, output_split_sizes: Ints, input_split_sizes: Ints) -> Ranks:
    """Parts of the first dimension: rank r gets the r-th part of every rank, one after another.

    Constraints:
        C1: the parts of a rank have as many rows as its tensor.
        C2: a rank gets as many rows from another as it expects.
    """
    sent = cast(Sequence[Ints], input_split_sizes)
    expected = cast(Sequence[Ints], output_split_sizes)
    parts = [np.split(x, np.cumsum(sizes)[:-1]) for x, sizes in zip(input, sent, strict=True)]
    for rank, sizes in enumerate(expected):
        got = tuple(of_rank[rank] for of_rank in sent)
        require("C2", got == tuple(sizes), f"rank {rank} of the group expects {tuple(sizes)} rows and is sent {got}")
    return [np.concatenate([of_rank[r] for of_rank in parts]) for r in range(len(input))]


@ATEN.collective(aten=overloads("broadcast"), shape=same_shape, ignores=GROUP)
def broadcast(input: Ranks, *, src: int) -> Ranks:
    """The tensor of one rank, which every rank gets; `src` counts within the group."""
    return [input[src]] * len(input)


_ROWS = ((5, 3),)
ATEN.samples(all_reduce, Sample(_ROWS, {"reduce_op": "median"}, breaks="C1"))
ATEN.samples(
    reduce_scatter_tensor,
    Sample(_ROWS, {"reduce_op": "median", "group_size": 5}, breaks="C1"),
    Sample(_ROWS, {"reduce_op": "sum", "group_size": 2}, breaks="C2"),
)
ATEN.samples(
    all_to_all_single,
    Sample(_ROWS, {"output_split_sizes": (2, 2), "input_split_sizes": (2, 2)}, breaks="C1"),
)
