"""Time of one kernel from a plain description: arithmetic, device memory, ring, scratchpads.

Inside one SuperDSC the engines overlap, so it takes as long as its busiest engine; SuperDSCs of a bundle follow each
other. Source: torch-spyre, cost_model.md and work_division.py; likely. Bytes are counted as they lie in memory.

An operand that several cores read is loaded once per chip and delivered to them; beyond a few cores delivery takes
longer. What loading it once per core would cost is told beside it, and does not enter the total.

Decision: docs/decisions/0040-published-times-only.md
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from enum import Enum
from math import exp, log2, prod

from spyre_mlir.hw.core_shares import reduction_share, stream_share
from spyre_mlir.hw.cost_parameters import CALIBRATED, NS_PER_US, PEAK, CostParameters
from spyre_mlir.hw.spec import SPYRE, STICK_BYTES, SpyreSpec


class CostKind(Enum):
    """Memory access and arithmetic of an op, as far as the cost model distinguishes them."""

    POINTWISE = "pointwise"
    ROW_REDUCTION = "row reduction"  # along the lanes
    OUTER_REDUCTION = "outer reduction"  # across sticks, lanes stay
    PRODUCT = "product"
    RESTICKIFY = "restickify"
    GATHER = "gather"


class Bottleneck(Enum):
    """The engine that a kernel waits for."""

    COMPUTE = "compute"
    MEMORY = "memory"
    RING = "ring"
    SCRATCHPAD = "scratchpad"
    FIXED = "fixed"


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Device-memory traffic of one operand.

    Attributes:
        bytes: distinct bytes of it that the kernel touches, padding of sticks included.
        needed: the bytes that carry elements, padding excluded.
        per_core: bytes of it that one core touches.
        readers: cores that touch the same bytes.
        written: whether it is the result.
        local: whether it is in the scratchpads.
        small: whether a loop of the result does not move in it, so that elements are used again.
        run: bytes that lie together in what one core touches; told, not priced: what a request costs is not published.
    """

    bytes: int
    needed: int
    per_core: int
    readers: int = 1
    written: bool = False
    local: bool = False
    small: bool = False
    run: int = STICK_BYTES


@dataclass(frozen=True, kw_only=True)
class MatmulLoops:
    """The loops of a contraction.

    Attributes:
        batch: extent of the loops that both operands and the result have.
        shared_batch: extent of further result loops that only the left operand has, beside its rows.
        rows, columns, depth: extents of the result's rows and columns, and of the sum.
        splits: over how many cores batch, rows, columns and depth are divided.
        inside: how much of the batch lies inside of the rows in memory, for the left operand, the right one and the
            result; 1 where the batch is outermost.
    """

    batch: int
    rows: int
    columns: int
    depth: int
    splits: tuple[int, int, int, int]
    shared_batch: int = 1
    inside: tuple[int, int, int] = (1, 1, 1)

    @property
    def macs(self) -> int:
        """Multiply-adds."""
        return self.batch * self.shared_batch * self.rows * self.columns * self.depth

    @property
    def tile(self) -> tuple[float, float]:
        """Rows and columns of the result that one core holds for one batch."""
        return self.rows / self.splits[1], self.columns / self.splits[2]


@dataclass(frozen=True, kw_only=True)
class Work:
    """Description of one kernel, as far as its time depends on it.

    Attributes:
        kind: what it does.
        cores: how many cores take part.
        elements: points of its iteration space, all cores together.
        operands: what it reads and writes.
        rows: rows that a reduction along the lanes reads.
        product: loops of a product, else None.
        trips: how often it runs: iterations of the loops of the bundle around it.
        iterations: iterations of loops that begin with it, so that their overhead counts once.
    """

    kind: CostKind
    cores: int
    elements: int
    operands: tuple[Traffic, ...]
    rows: int = 0
    product: MatmulLoops | None = None
    trips: int = 1
    iterations: int = 0

    def moved(self, *, written: bool | None = None) -> int:
        """Bytes of device memory moved in one run, each operand once per chip."""
        return sum(o.bytes for o in self.operands if not o.local and written in (None, o.written))

    @property
    def moved_per_core(self) -> int:
        """Bytes of device memory moved in one run if every core loads its own copy."""
        return sum(o.bytes if o.written else o.bytes * o.readers for o in self.operands if not o.local)

    @property
    def needed(self) -> int:
        """Least bytes of device memory that one run must move: every element once."""
        return sum(o.needed for o in self.operands if not o.local)

    @property
    def macs(self) -> int:
        """Multiply-adds in one run."""
        return 0 if self.product is None else self.product.macs


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Microseconds of one kernel, all trips.

    Attributes:
        compute: the busiest core's arithmetic.
        memory: device memory, operands loaded once per chip.
        memory_per_core: device memory if every core loaded its own copy; not part of the total.
        ring: between cores.
        scratchpad: the busiest core's scratchpad.
        reread: operands read again because a core's tile of the result is too large; not hidden.
        exposed: part of a product's shorter time, arithmetic or memory, that does not hide behind the longer.
        fixed: launch and loop overhead.
        fill: part of the PE array that is busy while it works; 1 for what does not use it.
        roofline: the least time that any division could take at the rates of the profile.
    """

    compute: float
    memory: float
    memory_per_core: float
    ring: float
    scratchpad: float
    reread: float
    fixed: float
    fill: float
    roofline: float
    exposed: float = 0.0

    @property
    def total(self) -> float:
        """Time of the busiest engine, plus the time that does not overlap."""
        return max(self.compute, self.memory, self.ring, self.scratchpad) + self.reread + self.exposed + self.fixed

    @property
    def bound(self) -> Bottleneck:
        """The engine that bounds the kernel."""
        engines = {
            Bottleneck.MEMORY: self.memory + self.reread,
            Bottleneck.COMPUTE: self.compute,
            Bottleneck.RING: self.ring,
            Bottleneck.SCRATCHPAD: self.scratchpad,
            Bottleneck.FIXED: self.fixed,
        }
        return max(engines, key=lambda b: engines[b])


def cost(work: Work, parameters: CostParameters = CALIBRATED, spec: SpyreSpec = SPYRE) -> Cost:
    """Predicts the time of one kernel on a card."""
    scale = work.trips / NS_PER_US
    compute, memory = compute_ns(work, parameters) * scale, memory_ns(work, parameters) * scale
    hidden = parameters.product_overlap if work.product is not None else 1.0
    return Cost(
        compute=compute,
        memory=memory,
        memory_per_core=own_copies_ns(work, parameters) * scale,
        ring=ring_ns(work, parameters) * scale,
        scratchpad=scratchpad_ns(work, parameters) * scale,
        reread=reread_ns(work, parameters) * scale,
        fixed=parameters.kernel_fixed_us * work.trips + parameters.trip_fixed_us * work.iterations,
        fill=fill(work, parameters),
        roofline=roofline_us(work.macs, work.needed, parameters, spec) * work.trips,
        exposed=(1 - hidden) * min(compute, memory),
    )


def total_us(
    work: Work, p: CostParameters = CALIBRATED, *, scratchpad: bool = True, local: Container[int] | None = None
) -> float:
    """Return the total of `cost` alone, in us.

    Args:
        work: the kernel.
        p: the numbers of a profile.
        scratchpad: whether the time of the scratchpads counts.
        local: numbers of operands taken as in the scratchpads; None for those that the work names.
    """
    local = [n for n, o in enumerate(work.operands) if o.local] if local is None else local
    outside = [o for n, o in enumerate(work.operands) if n not in local]
    compute, memory = compute_ns(work, p), _outside_ns(work, outside, p)
    inside = sum([o.per_core for n, o in enumerate(work.operands) if n in local]) if scratchpad else 0
    busiest = max(compute, memory, inside / p.lx_gb_per_s_per_core)
    if work.product is not None:
        busiest = max(busiest, ring_ns(work, p)) + reread_ns(work, p)
        busiest += (1 - p.product_overlap) * min(compute, memory)
    fixed = p.kernel_fixed_us * work.trips + p.trip_fixed_us * work.iterations
    return busiest * work.trips / NS_PER_US + fixed


def roofline_us(macs: int, needed: int, p: CostParameters = CALIBRATED, spec: SpyreSpec = SPYRE) -> float:
    """Least time of an amount of arithmetic and memory on the whole card at the rates of a profile."""
    return max(arithmetic_us(macs, p, spec), p.memory_us(needed))


def arithmetic_us(macs: int, p: CostParameters = PEAK, spec: SpyreSpec = SPYRE) -> float:
    """Time of multiply-adds on the PE arrays of the whole card, all of them full."""
    return macs / (p.pe_mac_per_ns_per_core * spec.cores_per_card) / NS_PER_US


def fill(work: Work, p: CostParameters) -> float:
    """Part of the PE array that a core's rows occupy."""
    return 1.0 if work.product is None else filled_by(work.product.tile[0], p)


def filled_by(rows: float, p: CostParameters) -> float:
    """Part of the PE array that so many rows occupy."""
    return min(1.0, (rows / p.pe_fill_rows) ** p.pe_fill_exponent)


def compute_ns(work: Work, p: CostParameters) -> float:
    """Return the arithmetic time of one core."""
    if work.product is None:
        return work.elements / work.cores / p.sfu_elements_per_ns_per_core
    slowdown = p.pe_divided_sum_slowdown if work.product.splits[3] > 1 else 1.0
    return slowdown * work.macs / work.cores / (mac_rate(work.product, work.cores, p) * fill(work, p))


def mac_rate(product: MatmulLoops, cores: int, p: CostParameters) -> float:
    """Return the rate of the PE array, which falls where a batch lies inside of the rows in memory."""
    left, right, result = product.inside
    if product.batch == 1 and product.shared_batch > 1:
        if left == 1:
            return p.pe_mac_per_ns_per_core
        few = product.shared_batch <= p.pe_batched_from_batch
        return p.pe_shared_small_batch_mac_per_ns_per_core if few else p.pe_shared_large_batch_mac_per_ns_per_core
    if cores < p.pe_batched_from_cores:
        return p.pe_mac_per_ns_per_core
    inputs = sum(batch >= p.pe_batched_from_batch for batch in (left, right))
    if inputs == 0 and result >= p.pe_batched_from_batch:
        return p.pe_batched_result_mac_per_ns_per_core
    if inputs == 0:
        return p.pe_mac_per_ns_per_core
    return p.pe_batched_mac_per_ns_per_core if inputs == 2 else p.pe_batched_one_input_mac_per_ns_per_core


def memory_ns(work: Work, p: CostParameters) -> float:
    """Return the device-memory time: bytes over the rate of this access kind, read/write alternation, delivery."""
    return _outside_ns(work, [o for o in work.operands if not o.local], p)


def _outside_ns(work: Work, outside: Sequence[Traffic], p: CostParameters) -> float:
    """The time in ns of the transfers of these operands between device memory and the scratchpads."""
    if not outside:
        return 0.0
    rate = _access_rate(work, outside, p)
    if rate is not None:
        return sum([o.bytes for o in outside]) / rate
    delivered = sum([o.bytes * _delivery(o, p) for o in outside])
    reads, writes = (sum([o.bytes for o in outside if o.written == written]) for written in (False, True))
    ns = delivered / p.hbm_gb_per_s + p.hbm_turnaround_ns_per_byte * min(reads, writes)
    return ns / stream_share(work.cores, p)


def _delivery(operand: Traffic, p: CostParameters) -> float:
    """Return the slowdown of an operand that many cores take from one load."""
    if operand.written or operand.readers == 1:
        return 1.0
    return max(1.0, operand.readers / p.hbm_multicast_free_cores) ** p.hbm_multicast_exponent


def _access_rate(work: Work, outside: Sequence[Traffic], p: CostParameters) -> float | None:
    """The measured rate of an access pattern, turnaround included; None where the general rule holds."""
    match work.kind:
        case CostKind.RESTICKIFY:
            return p.restickify_gb_per_s * stream_share(work.cores, p)
        case CostKind.OUTER_REDUCTION:
            return p.outer_reduction_gb_per_s * reduction_share(work.cores, p)
        case CostKind.ROW_REDUCTION:
            slope = exp(-work.rows / p.reduction_rows)
            rate = min(p.hbm_gb_per_s, p.reduction_floor_gb_per_s + p.reduction_extra_gb_per_s * slope)
            return rate * reduction_share(work.cores, p)
        case CostKind.POINTWISE:
            inputs = [o for o in outside if not o.written]
            mixed = any(o.small for o in inputs) and not all(o.small for o in inputs)
            return p.broadcast_gb_per_s * stream_share(work.cores, p) if mixed else None
        case _:
            return None


def own_copies_ns(work: Work, p: CostParameters) -> float:
    """Return the device-memory time if every core that needs an operand loads its own copy."""
    outside = [o for o in work.operands if not o.local]
    shared = sum(o.per_core for o in outside if o.readers > 1 and not o.written)
    if not shared:
        return memory_ns(work, p)
    rest = sum(o.bytes for o in outside if o.readers == 1 or o.written)
    return rest / p.hbm_gb_per_s + shared / p.hbm_own_copy_gb_per_s_per_core


def ring_ns(work: Work, p: CostParameters) -> float:
    """Return the time of partial sums between cores: one pass over a core's tile per further core of the sum."""
    if work.product is None or work.product.splits[3] == 1:
        return 0.0
    b, m, n, k = work.product.splits
    return (k - 1) * (work.macs / work.product.depth / (b * m * n)) * p.ring_partial_sum_ns_per_element


def scratchpad_ns(work: Work, p: CostParameters) -> float:
    """Return the time of one core's traffic with its own scratchpad, for operands that live there."""
    return sum(o.per_core for o in work.operands if o.local) / p.lx_gb_per_s_per_core


def reread_ns(work: Work, p: CostParameters) -> float:
    """Return the time of re-reading matmul operands: the tile is large and the result divided over many cores."""
    if work.product is None:
        return 0.0
    excess = prod(work.product.tile) - p.reread_from_tile_elements
    if excess <= 0:
        return 0.0
    _, m, n, _ = work.product.splits
    long, short = (m, n) if work.product.rows >= work.product.columns else (n, m)
    steps = p.reread_long_ns_per_element * max(0.0, log2(long / p.reread_long_free_cores))
    steps += p.reread_short_ns_per_element * max(0.0, log2(short / p.reread_short_free_cores))
    return excess * steps
