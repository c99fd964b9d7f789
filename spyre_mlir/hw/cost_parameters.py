"""The numbers of the cost model: for each number a value per profile, its source, and its certainty.

`CALIBRATED` holds fits that others published after measuring on cards; nothing here is fitted again. `PEAK` holds
what the hardware could do at best: no efficiency is lost anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import inf, isfinite
from typing import Any, Literal

from spyre_mlir.hw.certainty import Tag

Profile = Literal["calibrated", "peak"]

_FIT = "torch-spyre, _inductor/cost_model.py, fitted on cards"
_SPLITS = "torch-spyre, _inductor/work_division.py"
_NO_LOSS = "the peak profile loses nothing here"


NS_PER_US = 1000.0


@dataclass(frozen=True)
class NumberSource:
    """Source of a number."""

    source: str
    certainty: Tag


@dataclass(frozen=True)
class ParameterNumber:
    """A number of the cost model in both profiles; `most` is the largest value that has a meaning."""

    calibrated: float
    peak: float
    origin: NumberSource
    peak_origin: NumberSource
    most: float = inf


def _number(
    calibrated: float,
    source: str,
    certainty: Tag = Tag.LIKELY,
    *,
    peak: float,
    peak_source: str = _NO_LOSS,
    peak_certainty: Tag = Tag.CERTAIN,
    most: float = inf,
) -> Any:
    number = ParameterNumber(
        calibrated, peak, NumberSource(source, certainty), NumberSource(peak_source, peak_certainty), most
    )
    return field(default=calibrated, metadata={"number": number})


_SHARES = "torch-spyre, issue 4690: the shares of reductions for every access to device memory"
_CUBE = "HieronZhang/torch-spyre, bmm_layout_effects.md, batch 4, 32 cores"
_DRAM = "torch-spyre, work_division.py and docs"
_LINK = "torch-spyre docs, spyre_accelerator.md: PCIe 5.0 x16, one direction after line coding; not measured"
_CLOCK = "at 1.5 GHz, the clock at which the published peak is reached"


@dataclass(frozen=True, kw_only=True)
class CostParameters:
    """One profile's numbers; the unit is in every name. Rates are in GB/s, which is bytes per nanosecond."""

    hbm_gb_per_s: float = _number(150.0, _FIT, peak=204.8, peak_source=_DRAM)
    hbm_turnaround_ns_per_byte: float = _number(0.00574, f"{_FIT}: reads and writes that alternate", peak=0.0)
    hbm_multicast_free_cores: float = _number(8.0, f"{_SPLITS}: cores that share one load at no cost", peak=8.0)
    hbm_multicast_exponent: float = _number(
        0.75, f"{_SPLITS}: growth of the time to deliver one load to more cores", peak=0.0
    )
    hbm_own_copy_gb_per_s_per_core: float = _number(
        2.3,
        f"{_FIT}: cores that each load their own copy",
        peak=6.4,
        peak_source="the peak of the card over 32 cores",
        peak_certainty=Tag.INFERRED,
    )
    reduction_floor_gb_per_s: float = _number(114.0, f"{_FIT}: sums along rows, many rows", peak=204.8)
    reduction_extra_gb_per_s: float = _number(61.0, f"{_FIT}: sums along rows, few rows", peak=0.0)
    reduction_rows: float = _number(3700.0, f"{_FIT}: sums along rows", peak=3700.0)
    reduction_share_of_1_core: float = _number(
        0.11, f"{_FIT}: part of the bus that one core can fill", peak=1.0, most=1.0
    )
    reduction_share_of_2_cores: float = _number(0.22, _FIT, peak=1.0, most=1.0)
    reduction_share_of_4_cores: float = _number(0.43, _FIT, peak=1.0, most=1.0)
    reduction_share_of_8_to_16_cores: float = _number(0.54, _FIT, peak=1.0, most=1.0)
    stream_share_of_1_core: float = _number(0.11, _SHARES, peak=1.0, most=1.0)
    stream_share_of_2_cores: float = _number(0.22, _SHARES, peak=1.0, most=1.0)
    stream_share_of_4_cores: float = _number(0.43, _SHARES, peak=1.0, most=1.0)
    stream_share_of_8_to_16_cores: float = _number(0.54, _SHARES, peak=1.0, most=1.0)
    outer_reduction_gb_per_s: float = _number(113.0, f"{_FIT}: sums across rows", peak=204.8)
    restickify_gb_per_s: float = _number(116.0, _FIT, peak=204.8)
    broadcast_gb_per_s: float = _number(118.0, f"{_FIT}: one operand whole, one small", peak=204.8)
    pe_mac_per_ns_per_core: float = _number(1140.0, f"{_FIT}: sustained", peak=1536.0, peak_source=_SPLITS)
    pe_fill_rows: float = _number(64.0, f"{_FIT}: 8 passes of 8 rows fill the array", peak=64.0)
    pe_fill_exponent: float = _number(0.35, f"{_FIT}: loss with fewer rows", peak=0.0)
    pe_batched_mac_per_ns_per_core: float = _number(
        160.0, f"{_FIT}: the batch inside of the rows in memory", peak=1536.0, peak_source=_SPLITS
    )
    pe_batched_one_input_mac_per_ns_per_core: float = _number(
        267.0, f"160, times 1.67 for one input with the batch outside: {_CUBE}", peak=1536.0, peak_source=_SPLITS
    )
    pe_batched_result_mac_per_ns_per_core: float = _number(
        670.0, f"1140, less a factor of 1.70 for the result alone: {_CUBE}", peak=1536.0, peak_source=_SPLITS
    )
    pe_batched_from_batch: float = _number(4.0, _FIT, peak=4.0)
    pe_batched_from_cores: float = _number(8.0, _FIT, peak=8.0)
    pe_shared_small_batch_mac_per_ns_per_core: float = _number(
        705.0, f"{_FIT}: one operand without the batch, batch up to 4", peak=1536.0, peak_source=_SPLITS
    )
    pe_shared_large_batch_mac_per_ns_per_core: float = _number(
        470.0, f"{_FIT}: one operand without the batch, larger batch", peak=1536.0, peak_source=_SPLITS
    )
    pe_divided_sum_slowdown: float = _number(
        2.0, f"{_SPLITS}: a divided sum keeps one corelet of a core busy", peak=1.0
    )
    product_overlap: float = _number(
        1.0,
        f"{_FIT}: the shorter of arithmetic and memory time of a product hides behind the longer",
        peak=1.0,
        most=1.0,
    )
    reread_from_tile_elements: float = _number(
        131072.0, f"{_FIT}: a core's tile of the result that no longer fits", peak=131072.0
    )
    reread_long_ns_per_element: float = _number(2.62, f"{_FIT}: longer side of the result over many cores", peak=0.0)
    reread_long_free_cores: float = _number(8.0, _FIT, peak=8.0)
    reread_short_ns_per_element: float = _number(2.88, f"{_FIT}: shorter side of the result over many cores", peak=0.0)
    reread_short_free_cores: float = _number(16.0, _FIT, peak=16.0)
    ring_partial_sum_ns_per_element: float = _number(
        0.14,
        f"{_SPLITS}: one partial sum to the next core",
        peak=0.04,
        peak_source=f"2 bytes over 32 bytes a cycle {_CLOCK}",
        peak_certainty=Tag.INFERRED,
    )
    lx_gb_per_s_per_core: float = _number(
        547.0,
        f"{_FIT}: walking a scratchpad",
        peak=576.0,
        peak_source=f"256 bytes read and 128 written a cycle {_CLOCK}",
        peak_certainty=Tag.INFERRED,
    )
    sfu_elements_per_ns_per_core: float = _number(
        70.4,
        "64 lanes at 1.1 GHz; measured kernels of exp, gelu and neg take the same time",
        Tag.INFERRED,
        peak=96.0,
        peak_source=f"64 lanes {_CLOCK}",
        peak_certainty=Tag.INFERRED,
    )
    host_link_gb_per_s: float = _number(63.0, _LINK, peak=63.0, peak_source=_LINK, peak_certainty=Tag.LIKELY)
    kernel_fixed_us: float = _number(0.0, f"{_FIT}: time over bytes passes through the origin", peak=0.0)
    trip_fixed_us: float = _number(0.69, "AdnanHoque/torch-spyre, notes: one iteration of a loop", peak=0.0)

    def memory_us(self, moved_bytes: float) -> float:
        """Return the least time in which device memory reads or writes so many bytes."""
        return moved_bytes / self.hbm_gb_per_s / NS_PER_US

    def link_us(self, moved_bytes: float) -> float:
        """Return the least time of a transfer between host and device."""
        return moved_bytes / self.host_link_gb_per_s / NS_PER_US


def number_of(name: str) -> ParameterNumber:
    """Return a parameter in both profiles, with its sources.

    Raises:
        KeyError: there is no such parameter.
    """
    return {f.name: f.metadata["number"] for f in fields(CostParameters)}[name]


def names() -> tuple[str, ...]:
    """Return the names of all parameters, in the order of the page that documents them."""
    return tuple(f.name for f in fields(CostParameters))


def uncertain() -> tuple[str, ...]:
    """Return the parameters of the calibrated profile that are not certain: candidates for variation."""
    return tuple(n for n in names() if number_of(n).origin.certainty is not Tag.CERTAIN)


def scaled(parameters: CostParameters, name: str, factor: float) -> CostParameters:
    """Return the same numbers with one of them multiplied; a part of a whole stays at most that."""
    number = min(number_of(name).most, getattr(parameters, name) * factor)
    return replace(parameters, **{name: number})


def differences(parameters: CostParameters) -> Mapping[str, float]:
    """Return the numbers that are not those of the calibrated profile."""
    pairs = {name: getattr(parameters, name) for name in names()}
    return {name: number for name, number in pairs.items() if number != getattr(CALIBRATED, name)}


def altered(numbers: Mapping[str, float]) -> CostParameters:
    """Return the calibrated profile with other values of some numbers.

    Raises:
        ValueError: there is no such number, or its value has no meaning.
    """
    for name, number in numbers.items():
        if name not in names():
            raise ValueError(f"the cost model has no number '{name}'; its numbers are {', '.join(names())}")
        known = number_of(name)
        # Whatever is 0 in a profile is a loss; with a rate or a count of 0, nothing ever ends.
        may_be_0 = 0 in (known.calibrated, known.peak)
        if not isfinite(number) or number < 0 or number > known.most or (number == 0 and not may_be_0):
            low = "from" if may_be_0 else "above"
            raise ValueError(f"{name} must be {low} 0, at most {known.most:g}, got {number:g}")
    return CostParameters(**numbers)


CALIBRATED = CostParameters()
PEAK = CostParameters(**{n: number_of(n).peak for n in names()})
PROFILES: dict[Profile, CostParameters] = {"calibrated": CALIBRATED, "peak": PEAK}

# Sources disagree about how much of the memory's rate few cores reach outside of reductions. `CALIBRATED` takes the
# shares of reductions, which the products of one row on 25 cores support (torch-spyre, issue 4032: 1.29 times as long
# as on 32). `QUICK_STREAMS` takes what pointwise kernels reach on 8 and 16 cores (13 % to 15 % less than on 32:
# HieronZhang/torch-spyre, cost_model_report.md) and a softmax of 1 MB on one core (88 GB/s of 150: torch-spyre,
# scratchpad_planning.md); what lies between is interpolated. Likely, both.
QUICK_STREAMS = replace(
    CALIBRATED,
    stream_share_of_1_core=0.59,
    stream_share_of_2_cores=0.68,
    stream_share_of_4_cores=0.78,
    stream_share_of_8_to_16_cores=0.87,
)
# A later report hides less: of the shorter time of a product, 46 % (cost_model_report.md, section 11). Likely.
PARTIAL_OVERLAP = replace(CALIBRATED, product_overlap=0.46)
LAWS: dict[str, CostParameters] = {
    "calibrated": CALIBRATED,
    "quick-streams": QUICK_STREAMS,
    "partial-overlap": PARTIAL_OVERLAP,
}

# The shortest kernel among the measurements took 15.5 us (benchmarks/cost_model.py).
SHORTEST_MEASURED_US = 15.0
# Time of a launch, by which plans are compared. Predicted times leave it out, as no length of a launch is published.
LAUNCH_US = 0.2
