"""Plans, traces and runs with known states: the parts of a program's launches that stay from run to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects.func import FuncOp

from spyre_mlir.machine.bundle.known_runs import KnownRun
from spyre_mlir.machine.bundle.launch_trace import Trace
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.superdsc.launch_plans import LaunchPlans

# Steps of a function that are kept; a loop adds those of every trip.
_LONGEST = 1 << 13
# Runs of one function that are kept, of different states at their beginning.
_RUNS = 4

_Key = tuple[int, tuple[int, ...], type[Memory], bool]


@dataclass
class ProgramPlans:
    """Everything about a program's launches that does not depend on data, kept from run to run.

    Attributes:
        launches: the plans of single launches.
    """

    launches: LaunchPlans = field(default_factory=LaunchPlans)
    _known: dict[_Key, list[KnownRun]] = field(default_factory=dict[_Key, "list[KnownRun]"])
    _traces: dict[tuple[int, tuple[int, ...]], tuple[FuncOp, Trace]] = field(
        default_factory=dict[tuple[int, tuple[int, ...]], tuple[FuncOp, Trace]]
    )

    @property
    def empty(self) -> bool:
        """Return whether no function has run to its end."""
        return not self._traces

    def trace(self, function: FuncOp, addresses: Sequence[int]) -> Trace | None:
        """Return the trace of a function.

        Args:
            function: a bundle function.
            addresses: the values of its arguments, and where free memory begins.
        """
        known = self._traces.get((id(function), tuple(addresses)))
        return None if known is None else known[1]

    def keep(self, function: FuncOp, addresses: Sequence[int], trace: Trace) -> None:
        """Keep the trace of a run that came to its end, unless it is very long."""
        if len(trace) <= _LONGEST:
            self._traces[id(function), tuple(addresses)] = function, trace

    def known_runs(self, function: FuncOp, addresses: Sequence[int], memory: Memory) -> list[KnownRun]:
        """Return the runs of a function that began with the states that memory has now, the latest first."""
        return [run for run in self._known.get(_key(function, addresses, memory), ()) if run.begins_with(memory)]

    def keep_run(self, function: FuncOp, addresses: Sequence[int], memory: Memory, run: KnownRun) -> None:
        """Keep a run whose states are known; the latest few stay."""
        runs = self._known.setdefault(_key(function, addresses, memory), [])
        self._known[_key(function, addresses, memory)] = [run, *runs][:_RUNS]


def _key(function: FuncOp, addresses: Sequence[int], memory: Memory) -> _Key:
    return id(function), tuple(addresses), type(memory), memory.partial_sums_are_wide


__all__ = ["ProgramPlans"]
