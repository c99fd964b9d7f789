"""Pass `place-lx`: places intermediate buffers in the cores' scratchpads where this saves device-memory traffic.

A buffer qualifies if only kernel ops use it and all of them give each core the same slice of it. A tensor from the host
that several ops read in the same slices is copied to the scratchpads once. The buffers that save most choose first, at
the lowest address that is free while they live; a pointwise result may take over the address of an operand that dies
there. Where that leaves buffers out, a search for the choice that saves most, and for its addresses, takes over. All
other buffers stay in HBM: among them a buffer that several launches use, as scratchpads are undefined when a launch
begins, and the operands of a restickify unless `restickify` asks for its form between scratchpads, which only one
research build writes. Buffers in LX that have an address keep it, those without one must find room.

Decision: docs/decisions/0027-what-lives-in-lx.md
Decision: docs/decisions/0127-own-search-packs-scratchpads.md
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from typing_extensions import override
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.aten_arguments import ORIGIN
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.hints import HintError
from spyre_mlir.dialects.spyre.static_loop import ancestor_in
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.placement import Pair, Request, collisions
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.planning.scratchpad import place
from spyre_mlir.transforms.kernel_plans.lx_candidates import (
    Candidate,
    candidate_of,
    copies_of,
    copy_op,
    points_of,
    request_of,
    space_of,
)
from spyre_mlir.transforms.kernel_plans.unfit_buffers import unfit_reason
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.transforms.utils.hints import follow_hbm_hints, hinted_place
from spyre_mlir.transforms.utils.kernels.launches import launch_numbers
from spyre_mlir.transforms.utils.rebuild import describe_location

NO_SLICES = "its kernels see other slices of it, or it has no room"


@dataclass(frozen=True)
class PlaceLxPass(FunctionPass):
    """Sets the LX address of intermediate buffers.

    Attributes:
        copies: whether tensors the host sends are copied to LX when several ops read them.
        restickify: whether a restickify may work inside the scratchpads (`ReStickifyOpLx`).
    """

    name = "place-lx"

    copies: bool = True
    restickify: bool = False

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Place the buffers of a function."""
        place_block(function.body.block, spec, copies=self.copies, restickify=self.restickify)


def place_block(block: Block, spec: SpyreSpec, *, copies: bool, restickify: bool = False) -> None:
    """Place the buffers of a block and of its loops.

    Args:
        block: of a function, or of a loop that is tried out.
        spec: the machine.
        copies: whether what several ops read in the same slices is copied to LX.
        restickify: whether a restickify may work inside the scratchpads.

    Raises:
        LoweringError: a buffer that must be in LX has no room there.
        HintError: a hint asks for a buffer there, and no slices of it can be; or for HBM, and it has an address here.
    """
    points, launches = points_of(block), launch_numbers(block)
    follow_hbm_hints(points)
    given = any(isinstance(op, kernel.AllocOp) and op.offset is not None for op in points)
    made = {op: c for op in points if (c := candidate_of(op, launches)) is not None}
    found = list(made.values())
    if copies:
        found += [c for op in points if op not in made for c in copies_of(op, points, launches)]
    if not restickify:
        found = [c for c in found if c.local_alloc or not any(isinstance(op, kernel.RestickifyOp) for op, _ in c.uses)]
    requests = [request_of(n, c, points) for n, c in enumerate(found)]
    takeovers = _takeovers(found, requests)
    addresses = place(requests, spec.lx_usable_bytes, takeovers)
    while broken := _broken_pairs(found, addresses):
        requests = [r for r in requests if r.number not in broken]
        addresses = place(requests, spec.lx_usable_bytes, takeovers)
    for number, candidate in enumerate(found):
        if number in addresses:
            _put(candidate, addresses[number])
        elif (alloc := candidate.local_alloc) is not None:
            raise LoweringError(
                f"no {candidate.view.bytes_per_core(candidate.tensor)} bytes of the "
                f"scratchpad's {spec.lx_usable_bytes} are free while this buffer lives",
                where=f"{alloc.name} at {describe_location(alloc)}",
                hint="use more cores, or hbm for this buffer or another",
            )
    for op in points:
        if isinstance(op, kernel.AllocOp) and hinted_place(op.result) == "lx" and space_of(op.result) != "lx":
            never = unfit_reason(op.result)
            raise HintError(
                f"a hint asks for a buffer in LX, and it is not there: {never or NO_SLICES}",
                where=f"{op.name} at {describe_location(op)}",
                hint='take the hint away, or ask for place="hbm"'
                if never
                else "divide its kernels alike, or ask before plan, which does",
            )
    if given:
        check_placement(block)
    else:
        _check_apart(found, requests, addresses, takeovers)


def without_room(block: Block, spec: SpyreSpec) -> list[kernel.AllocOp]:
    """Return buffers of a block and its loops that are to be in LX and find no room there."""
    points, launches = points_of(block), launch_numbers(block)
    wanted = [op for op in points if isinstance(op, kernel.AllocOp) and space_of(op.result) == "lx"]
    found = [c for op in wanted if (c := candidate_of(op, launches)) is not None]
    requests = [request_of(n, c, points) for n, c in enumerate(found)]
    addresses = place(requests, spec.lx_usable_bytes, _takeovers(found, requests))
    return [c.local_alloc for n, c in enumerate(found) if n not in addresses and c.local_alloc is not None]


def _takeovers(found: Sequence[Candidate], requests: Sequence[Request]) -> set[Pair]:
    """Pairs of an operand that dies at a pointwise op and the result that is first written there."""
    by_use = {use: number for number, c in enumerate(found) for use in c.uses}
    pairs: set[Pair] = set()
    for born, candidate in enumerate(found):
        if candidate.is_copy:
            continue
        for op, number in candidate.uses:
            if number != len(op.inputs):
                continue
            operands = [(n, by_use[op, n]) for n in range(len(op.inputs)) if (op, n) in by_use]
            for dying in {d for _, d in operands}:
                same = all(op.may_take_over(n, found[d].tensor) for n, d in operands if d == dying)
                if same and requests[dying].last == requests[born].first:
                    pairs.add((dying, born))
    return pairs


def _broken_pairs(found: Sequence[Candidate], addresses: dict[int, int]) -> set[int]:
    """Buffers in LX that a restickify takes from or to HBM."""
    by_use = {use: number for number, c in enumerate(found) for use in c.uses}
    broken: set[int] = set()
    for (op, number), candidate in by_use.items():
        if not isinstance(op, kernel.RestickifyOp) or candidate not in addresses:
            continue
        partner = by_use.get((op, 1 - number))
        if partner is None or partner not in addresses:
            broken.add(candidate)
    return broken


def _put(candidate: Candidate, address: int) -> None:
    tensor = candidate.tensor
    type_ = DeviceTensorType(replace(tensor, space="lx"))
    alloc = candidate.alloc
    if alloc is not None:
        if tensor.space != "lx":
            Rewriter.replace_value_with_new_type(alloc.result, type_)
    else:
        alloc = kernel.AllocOp(type_)
        copy = copy_op(candidate, alloc.result)
        block, first = candidate.home, ancestor_in(candidate.home, candidate.readers[0][0])
        if copy is None:
            return
        alloc.location = copy.location = first.location
        if (number := candidate.readers[0][0].attributes.get(ORIGIN)) is not None:
            copy.attributes[ORIGIN] = number
        block.insert_ops_before([alloc, copy], first)
        for op, number in candidate.readers:
            op.operands[number] = alloc.result
    alloc.offset = IntegerAttr(address, i64)


def check_placement(block: Block) -> None:
    """Check that no two buffers that live at the same time share bytes of the scratchpads.

    Raises:
        LoweringError: two do.
    """
    points = points_of(block)
    placed = [op for op in points if isinstance(op, kernel.AllocOp) and space_of(op.result) == "lx"]
    found = [Candidate(op.result, kernel.shared_view(op.result)) for op in placed]
    found = [c for c in found if c.uses and c.alloc is not None and c.alloc.offset is not None]
    requests = [request_of(n, c, points) for n, c in enumerate(found)]
    addresses = {r.number: r.address for r in requests if r.address is not None}
    _check_apart(found, requests, addresses, _takeovers(found, requests))


def _check_apart(
    found: Sequence[Candidate], requests: Sequence[Request], addresses: Mapping[int, int], takeovers: Collection[Pair]
) -> None:
    sizes = {r.number: r.size for r in requests}
    for one, other in collisions(requests, addresses, takeovers):
        raise LoweringError(
            f"two buffers live in the same bytes of the scratchpad: {addresses[one]} to {addresses[one] + sizes[one]} "
            f"and {addresses[other]} to {addresses[other] + sizes[other]}",
            where=", ".join(
                f"{op.name} at {describe_location(op)}" for op in (found[one].alloc, found[other].alloc) if op
            ),
            hint="give one of them another address, or free the first before the second is written",
        )
