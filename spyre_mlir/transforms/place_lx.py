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
from dataclasses import dataclass, field, replace
from functools import cached_property

from typing_extensions import override
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.aten_arguments import ORIGIN
from spyre_mlir.dialects.ir.modules import take_apart
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensor, DeviceTensorType, IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.core_view import CoreView
from spyre_mlir.dialects.spyre.hints import HintError
from spyre_mlir.dialects.spyre.kernel_loop import TileOp, buffer_behind, is_written, uses_with_tiles
from spyre_mlir.dialects.spyre.static_loop import ancestor_in, trips_of
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.placement import Pair, Request, collisions
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import LinearExpr, StickError
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.planning.scratchpad import place
from spyre_mlir.transforms.kernel_plans.unfit_buffers import unfit_reason
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.transforms.utils.hints import follow_hbm_hints, hinted_place
from spyre_mlir.transforms.utils.kernels.launches import Launches, launch_numbers, one_launch
from spyre_mlir.transforms.utils.rebuild import describe_location

_REQUIRED = 2**62  # more than any saving in sticks
NO_SLICES = "its kernels see other slices of it, or it has no room"


@dataclass
class Candidate:
    """A buffer that may be placed in LX.

    Attributes:
        value: the buffer, or for a copy the device tensor that is copied.
        view: the slices its users agree on.
        readers: for a copy, the uses that read it instead: op and operand number.
    """

    value: SSAValue
    view: CoreView
    readers: list[tuple[kernel.KernelOp, int]] = field(default_factory=list[tuple[kernel.KernelOp, int]])

    @property
    def is_copy(self) -> bool:
        """Return whether it is a copy of a tensor that stays in HBM."""
        return bool(self.readers)

    @property
    def alloc(self) -> kernel.AllocOp | None:
        """The alloc op of the buffer, unless it is a copy."""
        return self.value.owner if isinstance(self.value.owner, kernel.AllocOp) and not self.is_copy else None

    @property
    def local_alloc(self) -> kernel.AllocOp | None:
        """The alloc op of the buffer, if the program already places it in LX."""
        return self.alloc if _space(self.value) == "lx" else None

    @property
    def tensor(self) -> DeviceTensor:
        """The tensor that LX would hold."""
        owner = self.value.owner
        return owner.compact() if isinstance(owner, TileOp) else kernel.device_tensor(self.value)

    @property
    def home(self) -> Block:
        """The block that creates the buffer."""
        owner = self.value.owner
        block = owner if isinstance(owner, Block) else owner.parent_block()
        if block is None:
            raise LoweringError("a buffer outside of a function", hint="put the kernels into a function")
        return block

    @cached_property
    def uses(self) -> list[tuple[kernel.KernelOp, int]]:
        """Ops that use the buffer, with the operand's number, as of the first question."""
        if self.is_copy:
            return self.readers
        return [(u.operation, u.index) for u in self.value.uses if isinstance(u.operation, kernel.KernelOp)]


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
    points, launches = _points(block), launch_numbers(block)
    follow_hbm_hints(points)
    given = any(isinstance(op, kernel.AllocOp) and op.offset is not None for op in points)
    made = {op: c for op in points if (c := _candidate(op, launches)) is not None}
    found = list(made.values())
    if copies:
        found += [c for op in points if op not in made for c in _copies(op, points, launches)]
    if not restickify:
        found = [c for c in found if c.local_alloc or not any(isinstance(op, kernel.RestickifyOp) for op, _ in c.uses)]
    requests = [_request(n, c, points) for n, c in enumerate(found)]
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
        if isinstance(op, kernel.AllocOp) and hinted_place(op.result) == "lx" and _space(op.result) != "lx":
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
    points, launches = _points(block), launch_numbers(block)
    wanted = [op for op in points if isinstance(op, kernel.AllocOp) and _space(op.result) == "lx"]
    found = [c for op in wanted if (c := _candidate(op, launches)) is not None]
    requests = [_request(n, c, points) for n, c in enumerate(found)]
    addresses = place(requests, spec.lx_usable_bytes, _takeovers(found, requests))
    return [c.local_alloc for n, c in enumerate(found) if n not in addresses and c.local_alloc is not None]


def _points(block: Block) -> dict[Operation, int]:
    """Ops by their point in time, those of a loop behind it; a copy is made at the odd point before its reader."""
    return {op: 2 * number for number, op in enumerate(block.walk())}


def _space(value: SSAValue) -> str:
    return kernel.device_tensor(value).space


def _candidate(op: Operation, launches: Launches) -> Candidate | None:
    """The buffer an op makes, if LX could hold it."""
    if not isinstance(op, kernel.AllocOp) or (op.offset is not None and _space(op.result) == "hbm"):
        return None
    if hinted_place(op.result) == "hbm":
        return None
    written = any(isinstance(u.operation, kernel.KernelOp) and u.operation.output is op.result for u in op.result.uses)
    read = any(isinstance(u.operation, kernel.KernelOp) and u.index < len(u.operation.inputs) for u in op.result.uses)
    try:
        candidate = Candidate(op.result, kernel.shared_view(op.result))
        for user, number in candidate.uses:
            user.local_walk(number)
    except StickError:
        return None
    return candidate if written and read and one_launch((user for user, _ in candidate.uses), launches) else None


def _copies(op: Operation, points: dict[Operation, int], launches: Launches) -> list[Candidate]:
    """Copies of a tensor that cannot be in LX itself: one for each way of slicing it that readings of a launch share.

    It is what the host sends, a tile, or a buffer of which one kernel writes other slices than its readers take.
    Products read a buffer while they multiply, so they need no copy of it.
    """
    if not isinstance(op, kernel.ToDeviceOp | TileOp | kernel.AllocOp) or (block := op.parent_block()) is None:
        return []
    writers = [u.operation for u in uses_with_tiles(buffer_behind(op.result)) if is_written(u)]
    made = isinstance(op, kernel.AllocOp)
    if made and (len(writers) != 1 or writers[0].parent_block() is not block):
        return []
    if not made and any(ancestor_in(block, w).parent_block() is block for w in writers):
        return []
    groups: list[Candidate] = []
    tensor = op.compact() if isinstance(op, TileOp) else None
    uses = sorted(op.result.uses, key=lambda u: (points.get(u.operation, -1), u.index))
    for use in uses:
        user = use.operation
        if not isinstance(user, kernel.ComputeOp) or user not in points:
            continue
        if made and (points[user] <= points[writers[0]] or user.is_product):
            continue
        try:
            view = user.core_view(use.index, tensor)
            user.local_walk(use.index, tensor)
        except StickError:
            continue
        group = next((g for g in groups if g.view == view and one_launch((user, g.readers[0][0]), launches)), None)
        if group is None:
            groups.append(Candidate(op.result, view, [(user, use.index)]))
        else:
            group.readers.append((user, use.index))
    return [g for g in groups if _saved_by_copy(g) > 0 and _copy_op(g, None) is not None]


def _runs(candidate: Candidate) -> int:
    """Return how often ops use a buffer, per creation of it."""
    return sum(trips_of(op, candidate.home) for op, _ in candidate.uses)


def _saved_by_copy(candidate: Candidate) -> int:
    """Return the sticks that readers take from a copy, per creation of it, less those of the copy.

    Readers of different parts of a tensor are no reason to copy it.
    """
    read = sum(trips_of(op, candidate.home) * op.operand_bytes(number) for op, number in candidate.readers)
    return read // STICK_BYTES - candidate.tensor.sticks


def _times(candidate: Candidate, points: dict[Operation, int]) -> list[int]:
    """Return the times of a buffer's uses; one live into and out of a loop is in use for the whole loop."""
    times: list[int] = []
    for op, _ in candidate.uses:
        around = ancestor_in(candidate.home, op)
        times.append(points[around])
        if isinstance(around, scf.ForOp) and around.body.block.last_op is not None:
            times.append(points[around.body.block.last_op])
    return times


def _request(number: int, candidate: Candidate, points: dict[Operation, int]) -> Request:
    tensor, times = candidate.tensor, _times(candidate, points)
    alloc = candidate.alloc
    address = None
    if alloc is not None and alloc.offset is not None:
        address = alloc.offset.value.data
    required = alloc is not None and tensor.space == "lx"
    made = trips_of(ancestor_in(candidate.home, candidate.uses[0][0]))
    uses = _saved_by_copy(candidate) if candidate.is_copy else _runs(candidate) * tensor.sticks
    return Request(
        number=number,
        size=candidate.view.bytes_per_core(tensor),
        first=min(times) - 1 if candidate.is_copy else min(times),
        last=max(times),
        # What must be in LX goes before everything that may be.
        saved=made * uses + (_REQUIRED if required else 0),
        address=address,
    )


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
        copy = _copy_op(candidate, alloc.result)
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


def _copy_op(candidate: Candidate, target: SSAValue | None) -> kernel.ComputeOp | None:
    """The op that copies a whole tensor, padding included, in the slices of the candidate; None if there is none."""
    layout, reader, number = candidate.tensor.layout, *candidate.readers[0]
    walked = {n: dim for dim, e in enumerate(reader.maps.data[number].data) for n, _ in e.terms}
    # The loops of the copy stand in the order in which the reader's divided loops number the cores.
    order = list(dict.fromkeys(walked[n] for n in reader.core_slices()[0] if reader.space_splits()[n] > 1))
    order += [d for d in range(len(layout.extents)) if d not in order and layout.extents[d] > 1]
    dims = [IterDim(f"d{d}", layout.extents[d], candidate.view.parts[d]) for d in order]
    index = tuple(LinearExpr.of(f"d{d}") if d in order else LinearExpr() for d in range(len(layout.extents)))
    maps = [IndexMapAttr(index)] * 2
    operands = [candidate.value], candidate.value if target is None else target
    op = kernel.ComputeOp(SpaceAttr(tuple(dims)), *operands, maps, {"function": StringAttr(COPY)})
    try:
        op.verify()
        op.local_walk(1, candidate.tensor)
        usable = op.core_view(1, candidate.tensor) == candidate.view
    except (StickError, VerifyException):
        usable = False
    if not usable or target is None:
        take_apart(op)
    return op if usable else None


def check_placement(block: Block) -> None:
    """Check that no two buffers that live at the same time share bytes of the scratchpads.

    Raises:
        LoweringError: two do.
    """
    points = _points(block)
    placed = [op for op in points if isinstance(op, kernel.AllocOp) and _space(op.result) == "lx"]
    found = [Candidate(op.result, kernel.shared_view(op.result)) for op in placed]
    found = [c for c in found if c.uses and c.alloc is not None and c.alloc.offset is not None]
    requests = [_request(n, c, points) for n, c in enumerate(found)]
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
