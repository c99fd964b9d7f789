"""Predicted timeline of a bundle's kernels on engines, with scratchpad contents: the data of traces and reports.

The cost model says how long every engine of a core works in a kernel, and that they overlap; not when inside the
kernel. Loads are drawn from its start, stores up to its end, everything else from its start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.work import work_of
from spyre_mlir.hw.cost import Cost, Work, arithmetic_us, cost, roofline_us
from spyre_mlir.hw.cost_parameters import PROFILES, Profile
from spyre_mlir.hw.spec import SPYRE, STICK_BYTES, SpyreSpec
from spyre_mlir.machine.bundle.host_times import HostStepTime
from spyre_mlir.machine.bundle.schedule import ARGUMENT, MEMORY, SCRATCHPAD, Launch, Schedule, launches, unrolled
from spyre_mlir.text.notebook import ShownAsText


class Engine(Enum):
    """An engine: engines work in parallel inside a kernel."""

    LOAD = "load"
    PE = "PE array"
    SFU = "vector unit"
    RING = "ring"
    STORE = "store"


@dataclass(frozen=True)
class TimedKernel:
    """A file of the bundle with its cost over all runs.

    Attributes:
        launch: where the bundle runs it.
        work: what it does in one run, with the number of runs.
        cost: time of all runs.
        source: line of the model it comes from, if known.
    """

    launch: Launch
    work: Work
    cost: Cost
    source: str = ""


@dataclass(frozen=True)
class Event:
    """One engine of some cores at work.

    Attributes:
        kernel: index into the kernels of the timeline.
        engine: which one.
        cores: the cores it is the same for.
        start_us: since the bundle began.
        duration_us: how long.
        bytes: what it moves, all these cores together; 0 for arithmetic.
    """

    kernel: int
    engine: Engine
    cores: range
    start_us: float
    duration_us: float
    bytes: int = 0


@dataclass(frozen=True)
class Resident:
    """A buffer in the scratchpads, at the same address on every core that holds it.

    Attributes:
        address: first byte.
        bytes: how many, on one core.
        cores: which cores have one.
        start_us, end_us: from the beginning of the kernel that writes it to the end of the last that reads it.
        kernel: the kernel that writes it.
    """

    address: int
    bytes: int
    cores: range
    start_us: float
    end_us: float
    kernel: int


@dataclass(frozen=True, repr=False)
class Timeline(ShownAsText):
    """Timeline of a bundle.

    Attributes:
        profile: of the cost model.
        kernels: every place that runs a file, in order.
        runs: index of the kernel, start and duration of every run.
        events: engines at work, in order of the runs.
        residents: buffers in the scratchpads.
        compulsory_bytes: what the bundle must read of its arguments and write of its results, each once.
        host_steps: what the host computes between launches; of its time only the transfers are known.
        spec: the card.
    """

    profile: Profile
    kernels: tuple[TimedKernel, ...]
    runs: tuple[tuple[int, float, float], ...]
    events: tuple[Event, ...]
    residents: tuple[Resident, ...]
    compulsory_bytes: int
    host_steps: tuple[HostStepTime, ...] = ()
    spec: SpyreSpec = SPYRE

    def __str__(self) -> str:
        """One line: kernels, runs, time and the profile that it is predicted with."""
        steps = f", {len(self.host_steps)} host steps" if self.host_steps else ""
        least = "at least " if self.is_lower_bound else ""
        counts = f"{len(self.kernels)} kernels, {len(self.runs)} runs{steps}"
        return f"<Timeline: {counts}, {least}{self.total_us:,.2f} us, {self.profile}>"

    @property
    def kernels_us(self) -> float:
        """Time of all kernels."""
        return sum(k.cost.total for k in self.kernels)

    @property
    def total_us(self) -> float:
        """Time of all kernels and of the transfers for host steps: a lower bound if there are host steps."""
        return self.kernels_us + sum(step.least_us for step in self.host_steps)

    @property
    def is_lower_bound(self) -> bool:
        """Return whether the total omits time, because the duration of host computation is unknown."""
        return bool(self.host_steps)

    @property
    def moved_bytes(self) -> int:
        """Bytes of device memory that all kernels move, shared operands once per chip."""
        return sum(k.work.moved() * k.work.trips for k in self.kernels)

    @property
    def moved_per_core_bytes(self) -> int:
        """The same if every core loaded its own copy."""
        return sum(k.work.moved_per_core * k.work.trips for k in self.kernels)

    @property
    def traffic_ratio(self) -> float:
        """Bytes moved over bytes that must move."""
        return self.moved_bytes / self.compulsory_bytes if self.compulsory_bytes else 1.0

    @property
    def roofline_us(self) -> float:
        """Least time of the arithmetic and the compulsory bytes on the whole card at the profile's rates."""
        macs = sum(k.work.macs * k.work.trips for k in self.kernels)
        return roofline_us(macs, self.compulsory_bytes, PROFILES[self.profile], self.spec)

    @property
    def times_by_bound(self) -> dict[str, float]:
        """Return microseconds by bounding engine, the longest first."""
        times: dict[str, float] = {}
        for k in self.kernels:
            times[k.cost.bound.value] = times.get(k.cost.bound.value, 0.0) + k.cost.total
        return dict(sorted(times.items(), key=lambda item: -item[1]))

    def occupancy(self, core: int = 0) -> tuple[tuple[float, int], ...]:
        """Return the live bytes of a core's scratchpad as steps: time, bytes."""
        held = [r for r in self.residents if core in r.cores]
        steps: list[tuple[float, int]] = []
        for time in sorted({r.start_us for r in held} | {r.end_us for r in held}):
            # A result that takes over its operand's place shares its bytes while the kernel runs.
            alive = sorted((r.address, r.address + r.bytes) for r in held if r.start_us <= time < r.end_us)
            size, behind = 0, 0
            for low, high in alive:
                size += max(0, high - max(low, behind))
                behind = max(behind, high)
            steps.append((time, size))
        return tuple(steps)

    @property
    def core_use(self) -> float:
        """Return the fraction of the card's active cores over time."""
        busy = sum(k.cost.total * k.work.cores for k in self.kernels)
        return busy / (self.kernels_us * self.spec.cores_per_card) if self.kernels_us else 0.0

    @property
    def fill(self) -> float:
        """Fraction of the PE array that is busy during matmuls, weighted by their arithmetic; 1 without matmuls."""
        weights = [(k.cost.compute, k.cost.fill) for k in self.kernels if k.work.product is not None]
        total = sum(w for w, _ in weights)
        return sum(w * f for w, f in weights) / total if total else 1.0

    @property
    def pe_use(self) -> float:
        """Time that all matmuls take on the PE arrays at their peak, over the time of all kernels."""
        ideal = sum(arithmetic_us(k.work.macs, spec=self.spec) * k.work.trips for k in self.kernels)
        return ideal / self.kernels_us if self.kernels_us else 0.0


def make_timeline(
    schedule: Schedule,
    profile: Profile = "calibrated",
    sources: Mapping[str, str] | None = None,
    host: Sequence[HostStepTime] = (),
) -> Timeline:
    """Predict the time of every event of a bundle.

    Args:
        schedule: what the bundle runs, and on which card.
        profile: numbers of the cost model.
        sources: line of the model per file name, for launches that do not say it.
        host: its host steps.
    """
    order = list(launches(schedule.items))
    # By identity: a bundle may run one file twice in the same way.
    places = {id(launch): number for number, launch in enumerate(order)}
    kernels = tuple(
        _kernel(launch, profile, launch.source or (sources or {}).get(launch.file, ""), schedule.spec)
        for launch in order
    )
    runs: list[tuple[int, float, float]] = []
    now = 0.0
    for launch in unrolled(schedule.items):
        number = places[id(launch)]
        kernel = kernels[number]
        duration = kernel.cost.total / kernel.work.trips if kernel.work.trips else 0.0
        runs.append((number, now, duration))
        now += duration
    events = tuple(e for n, start, duration in runs for e in _events(n, kernels[n], start, duration))
    residents = tuple(_residents(kernels, runs))
    return Timeline(profile, kernels, tuple(runs), events, residents, _compulsory(order), tuple(host), schedule.spec)


def _kernel(launch: Launch, profile: Profile, source: str, spec: SpyreSpec) -> TimedKernel:
    work = work_of(launch.descriptor, launch.trips, launch.iterations)
    return TimedKernel(launch, work, cost(work, PROFILES[profile], spec), source)


def _events(number: int, kernel: TimedKernel, start: float, duration: float) -> list[Event]:
    """The engines of one run; those that have nothing to do are left out."""
    work, cores = kernel.work, range(kernel.work.cores)
    one = kernel.cost.memory / work.trips
    reads, writes = work.moved(written=False), work.moved(written=True)
    load, store = (one * part / (reads + writes) if reads + writes else 0.0 for part in (reads, writes))
    arithmetic = Engine.SFU if work.product is None else Engine.PE
    found = [
        Event(number, Engine.LOAD, cores, start, load, reads),
        Event(number, arithmetic, cores, start, kernel.cost.compute / work.trips),
        Event(number, Engine.RING, cores, start, kernel.cost.ring / work.trips),
        Event(number, Engine.STORE, cores, start + duration - store, store, writes),
    ]
    return [event for event in found if event.duration_us > 0]


def _residents(kernels: Sequence[TimedKernel], runs: Sequence[tuple[int, float, float]]) -> list[Resident]:
    """Buffers in the scratchpads by the bytes that are written and read there."""
    open_: dict[int, Resident] = {}
    done: list[Resident] = []
    for number, start, duration in runs:
        descriptor = kernels[number].launch.descriptor
        end = start + duration
        for operand in descriptor.operands:
            if operand.component != keys.LX or operand.symbolic or not operand.start:
                continue
            address, size = int(operand.start[0]), operand.allocated_sticks() * STICK_BYTES
            if operand is not descriptor.output and address in open_:
                old = open_[address]
                open_[address] = Resident(address, old.bytes, old.cores, old.start_us, end, old.kernel)
                continue
            for other in [a for a, r in open_.items() if a < address + size and address < a + r.bytes]:
                done.append(open_.pop(other))
            open_[address] = Resident(address, size, range(descriptor.cores), start, end, number)
    return sorted([*done, *open_.values()], key=lambda r: (r.start_us, r.address))


def _compulsory(order: Sequence[Launch]) -> int:
    """Bytes of arguments that are read before anything writes them, and of results, each once."""
    written: set[str] = set()
    needed: dict[tuple[str, bool], int] = {}
    later = [{b for launch in order[n + 1 :] for b in launch.buffers[:-1]} for n in range(len(order))]
    for number, launch in enumerate(order):
        for place, (buffer, traffic) in enumerate(
            zip(launch.buffers, work_of(launch.descriptor).operands, strict=True)
        ):
            result = place == len(launch.buffers) - 1
            outside = buffer.startswith(ARGUMENT) or (buffer.startswith(MEMORY) and buffer not in later[number])
            counts = outside if result else buffer not in written and not buffer.startswith(SCRATCHPAD)
            if counts:
                key = (buffer, result)
                needed[key] = max(needed.get(key, 0), traffic.needed * launch.trips)
        written.add(launch.buffers[-1])
    return sum(needed.values())
