"""Record of what the planner looks at: blocks that it divides, and loops that it tries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.planning.divisions import Division, Kernel
from spyre_mlir.transforms.kernel_plans.kernel_choices import KernelChoices

Loops = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class PlannedBlock:
    """Kernels of a block that were divided together.

    Attributes:
        choices: what each of them may do.
        ops: the kernels.
        kernels: the same as the search takes them.
        plan: the division that was chosen.
    """

    choices: KernelChoices
    ops: Sequence[kernel.KernelOp]
    kernels: Sequence[Kernel]
    plan: Division

    def number(self, op: Operation) -> int:
        """Return the number of a kernel in the block."""
        return next(number for number, other in enumerate(self.ops) if other is op)

    def buffer(self, number: int) -> SSAValue:
        """Return a buffer by its number, as the kernels have it now."""
        places = ((op, found.operands) for op, found in zip(self.ops, self.kernels, strict=True))
        return next(op.operands[operands.index(number)] for op, operands in places if number in operands)


@dataclass(frozen=True)
class TriedLoop:
    """Loops that were tried around a group of kernels.

    Attributes:
        ops: the kernels, before any loop.
        loops: trips of the outer and perhaps an inner loop, with the loop of the first kernel that each cuts.
        usual_us: predicted time of the kernels without loops.
        least_us: a time that the loops do not beat.
        us: predicted time in the loops; None if they were not built, have no division, or are slower than `most_us`.
        most_us: the most time that would have been a gain; None if they were not built, as `least_us` says enough.
        hinted: whether a hint asked for loops.
        cuts: by kernel, the trips over each of its loops; empty where the loops go through unequal blocks.
    """

    ops: Sequence[Operation]
    loops: Loops
    usual_us: float
    least_us: float
    us: float | None = None
    most_us: float | None = None
    hinted: bool = False
    cuts: Sequence[Mapping[str, int]] = ()


@dataclass
class PlanRecord:
    """Record of the plans that the planner compared in a module.

    Attributes:
        blocks: in the order in which they were divided.
        loops: that were tried.
        taken: the loops that were put, and the number of kernels in them, by each kernel before it was in a loop.
        origins: the kernel before it was in a loop, by the kernel in it.
        us: predicted times of the functions, in order; None of one whose kernels are not planned together.
    """

    blocks: list[PlannedBlock] = field(default_factory=list[PlannedBlock])
    loops: list[TriedLoop] = field(default_factory=list[TriedLoop])
    taken: dict[Operation, tuple[Loops, int]] = field(default_factory=dict[Operation, tuple[Loops, int]])
    origins: dict[Operation, Operation] = field(default_factory=dict[Operation, Operation])
    us: list[float | None] = field(default_factory=list["float | None"])

    def moved(self, before: Sequence[Operation], after: Sequence[Operation]) -> None:
        """Note that kernels are now in loops, or around these; several may have been one."""
        origins = [self.origin(old) for old in before]
        for old in before:
            self.origins.pop(old, None)
        self.origins |= dict(zip(after, origins, strict=True))

    def start_again(self, blocks: int, ops: Mapping[Operation, Operation]) -> None:
        """Forget the divisions behind so many blocks, and the loops that were put; other ops stand for the kernels."""
        del self.blocks[blocks:], self.us[-1:]
        for number, loop in enumerate(self.loops):
            self.loops[number] = replace(loop, ops=[ops.get(self.origin(op), op) for op in loop.ops])
        for op in ops:
            self.taken.pop(op, None)

    def origin(self, op: Operation) -> Operation:
        """Return the kernel before it was in a loop: itself if it is in none."""
        return self.origins.get(op, op)

    def block(self, op: Operation) -> PlannedBlock | None:
        """Return the block in which a kernel was divided; None if it was not."""
        return next((b for b in reversed(self.blocks) if op in b.ops), None)

    def tried(self, op: Operation) -> list[TriedLoop]:
        """Return the loops that were tried around a kernel, as it was before any."""
        return [loop for loop in self.loops if op in loop.ops]


__all__ = ["Loops", "PlanRecord", "PlannedBlock", "TriedLoop"]
