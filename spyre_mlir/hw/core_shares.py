"""Parts of the device memory's rate that fewer cores than all of a card reach.

The parts are measured at some counts of cores and are fields of `CostParameters`, with their sources.

Decision: docs/decisions/0040-published-times-only.md
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import log2

from spyre_mlir.hw.cost_parameters import CostParameters
from spyre_mlir.hw.spec import SPYRE

_MEASURED_CORES = (1, 2, 4, 8, 16)
_REDUCTION_SHARES = (
    "reduction_share_of_1_core",
    "reduction_share_of_2_cores",
    "reduction_share_of_4_cores",
    "reduction_share_of_8_to_16_cores",
    "reduction_share_of_8_to_16_cores",
)
_STREAM_SHARES = (
    "stream_share_of_1_core",
    "stream_share_of_2_cores",
    "stream_share_of_4_cores",
    "stream_share_of_8_to_16_cores",
    "stream_share_of_8_to_16_cores",
)


def reduction_share(cores: int, p: CostParameters) -> float:
    """Return the part of the memory's rate that so many reducing cores reach."""
    return _share(cores, _REDUCTION_SHARES, p)


def stream_share(cores: int, p: CostParameters) -> float:
    """Return the part of the memory's rate that so many cores reach that do not reduce."""
    return _share(cores, _STREAM_SHARES, p)


def _share(cores: int, names: Sequence[str], p: CostParameters) -> float:
    """Interpolate between the measured counts of cores, linearly in the logarithm; no other share is read."""
    if cores >= SPYRE.cores_per_card:
        return 1.0
    known = (*zip(_MEASURED_CORES, names, strict=True), (SPYRE.cores_per_card, ""))
    for (low, name), (high, next_name) in pairwise(known):
        if cores <= high:
            share, next_share = getattr(p, name), getattr(p, next_name) if next_name else 1.0
            part = max(0.0, log2(cores / low) / log2(high / low))
            return share + (next_share - share) * part
    return 1.0
