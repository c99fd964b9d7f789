"""Trace of a bundle function with given addresses: its allocations and launches, in order.

A function has no branches, so its arguments and the free memory settle every address. A trace of one run replaces the
interpreter in the next with the same arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from xdsl.ir import Operation

from spyre_mlir.dialects.places import Rebase, source_of
from spyre_mlir.dialects.sdscbundle import CARRIED, PARAMETER, SdscExecuteOp
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.errors import MachineFault
from spyre_mlir.machine.faults import Standing
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.superdsc.launch_plans import LaunchPlans
from spyre_mlir.machine.superdsc.run import execute
from spyre_mlir.machine.superdsc.stale_reads import History


@dataclass(frozen=True)
class PoolAllocation:
    """Scratch memory that a function allocates.

    Attributes:
        size: its bytes.
    """

    size: int


@dataclass(frozen=True)
class LaunchSite:
    """One launch of a bundle function, as the host program has it.

    Attributes:
        arguments: names of the regions of memory that are its arguments.
        places: the places of its ops at this launch.
        named: per op of the function, which tensor each operand of its file is; it goes before what the op says.
    """

    arguments: Sequence[str] = ()
    places: Rebase = field(default_factory=Rebase)
    named: Mapping[Operation, Sequence[str]] = field(default_factory=dict[Operation, Sequence[str]])

    def tensors(self, op: SdscExecuteOp) -> tuple[str | None, ...]:
        """Return which region of memory each operand of a file is, where that is known."""
        return tuple(
            self._region(name) if name.startswith(PARAMETER) else None if name == CARRIED else name
            for name in self.named.get(op) or op.tensors
        )

    def _region(self, parameter: str) -> str | None:
        number = int(parameter.removeprefix(PARAMETER))
        return self.arguments[number] if number < len(self.arguments) else None


@dataclass(frozen=True)
class BoundLaunch:
    """A launch with the values of its symbols.

    Attributes:
        op: the launch.
        view: what its file says.
        symbols: byte address, or size, per symbol id.
        caller: the launch of the host program that it is a part of.
    """

    op: SdscExecuteOp
    view: Descriptor
    symbols: Mapping[int, int]
    caller: LaunchSite = field(default_factory=LaunchSite)

    @cached_property
    def standing(self) -> Standing:
        """File, level and line of the launch, for messages."""
        source = self.caller.places.source(source_of(self.op.location))
        return Standing(self.op.sdsc_filename.data, "superdsc", str(source) if source else None)

    @cached_property
    def _tensors(self) -> tuple[str | None, ...]:
        return self.caller.tensors(self.op)

    def run(self, memory: Memory, history: History | None = None, plans: LaunchPlans | None = None) -> None:
        """Run the operation on all its cores; a fault names the file, and its origin in the model."""
        log = memory.log
        log.standing = self.standing
        try:
            execute(self.view, memory, self.symbols, history, self._tensors, plans)
        except MachineFault as fault:
            log.keep(fault)
        finally:
            log.standing = None


Trace = list[PoolAllocation | BoundLaunch]


__all__ = ["BoundLaunch", "LaunchSite", "PoolAllocation", "Trace"]
