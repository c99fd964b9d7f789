"""Buffers that may be in the cores' scratchpads, and copies there of tensors that stay in device memory.

Decision: docs/decisions/0027-what-lives-in-lx.md
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from xdsl.dialects import scf
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ir.modules import take_apart
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensor, IndexMapAttr, IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.core_view import CoreView
from spyre_mlir.dialects.spyre.kernel_loop import TileOp, buffer_behind, is_written, uses_with_tiles
from spyre_mlir.dialects.spyre.static_loop import ancestor_in, trips_of
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.placement import Request
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.hw.sticks import LinearExpr, StickError
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.transforms.utils.hints import hinted_place
from spyre_mlir.transforms.utils.kernels.launches import Launches, one_launch

_REQUIRED = 2**62  # more than any saving in sticks


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
        return self.alloc if space_of(self.value) == "lx" else None

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


def points_of(block: Block) -> dict[Operation, int]:
    """Return ops by point in time, those of a loop behind it; a copy is made at the odd point before its reader."""
    return {op: 2 * number for number, op in enumerate(block.walk())}


def space_of(value: SSAValue) -> str:
    """Return the memory that a buffer is in."""
    return kernel.device_tensor(value).space


def candidate_of(op: Operation, launches: Launches) -> Candidate | None:
    """Return the buffer an op makes, if LX could hold it."""
    if not isinstance(op, kernel.AllocOp) or (op.offset is not None and space_of(op.result) == "hbm"):
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


def copies_of(op: Operation, points: dict[Operation, int], launches: Launches) -> list[Candidate]:
    """Return copies of a tensor that cannot be in LX itself: one for each way in which readers of a launch slice it.

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
    return [g for g in groups if _saved_by_copy(g) > 0 and _has_copy(g)]


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


def request_of(number: int, candidate: Candidate, points: dict[Operation, int]) -> Request:
    """Return what a candidate asks of the packing.

    Args:
        number: of the request.
        candidate: the buffer or copy.
        points: ops by their point in time.

    Returns:
        Its bytes on a core, its life, and the sticks of traffic that it saves.
    """
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


def _has_copy(candidate: Candidate) -> bool:
    """Return whether an op can copy the whole tensor in the slices of its readers."""
    if (op := copy_op(candidate, candidate.value)) is not None:
        take_apart(op)
    return op is not None


def copy_op(candidate: Candidate, target: SSAValue) -> kernel.ComputeOp | None:
    """Return the op that copies a whole tensor, padding included, in the slices of its readers; None if none can.

    Args:
        candidate: the copy.
        target: the buffer that takes it.
    """
    layout, reader, number = candidate.tensor.layout, *candidate.readers[0]
    walked = {n: dim for dim, e in enumerate(reader.maps.data[number].data) for n, _ in e.terms}
    # The loops of the copy stand in the order in which the reader's divided loops number the cores.
    order = list(dict.fromkeys(walked[n] for n in reader.core_slices()[0] if reader.space_splits()[n] > 1))
    order += [d for d in range(len(layout.extents)) if d not in order and layout.extents[d] > 1]
    dims = [IterDim(f"d{d}", layout.extents[d], candidate.view.parts[d]) for d in order]
    index = tuple(LinearExpr.of(f"d{d}") if d in order else LinearExpr() for d in range(len(layout.extents)))
    maps = [IndexMapAttr(index)] * 2
    operands = [candidate.value], target
    op = kernel.ComputeOp(SpaceAttr(tuple(dims)), *operands, maps, {"function": StringAttr(COPY)})
    try:
        op.verify()
        op.local_walk(1, candidate.tensor)
        usable = op.core_view(1, candidate.tensor) == candidate.view
    except (StickError, VerifyException):
        usable = False
    if not usable:
        take_apart(op)
    return op if usable else None
