"""Parts of the rows that a gather copies: more cores copy them, as cores share whole sticks of indices alone.

Decision: docs/decisions/0194-rows-are-gathered-in-parts.md
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from spyre_mlir.hw.cost import CostKind, Traffic, Work, total_us
from spyre_mlir.hw.cost_parameters import CALIBRATED, CostParameters
from spyre_mlir.hw.division import divisors
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec

# Rows in parts that gain less stay whole: the table has another form for it, and each index is sent for every part.
LEAST_GAIN_US = 5.0


def parts_of_rows(
    indices: Sequence[int],
    row_sticks: int,
    pieces: int,
    lanes: int,
    spec: SpyreSpec,
    p: CostParameters = CALIBRATED,
) -> int:
    """Return into how many parts to take each row of a table for a gather: 1 where more gain too little.

    Args:
        indices: extents of the tensor of indices, the last one in the lanes.
        row_sticks: sticks of a row of the table.
        pieces: of a row, all alike, that stay whole.
        lanes: indices in a stick.
        spec: the machine.
        p: parameters of the cost model.
    """
    *outer, last = indices
    shares = [*outer, last // lanes if last % lanes == 0 else 1]
    moved = prod(indices) * row_sticks * STICK_BYTES

    def us(parts: int) -> float:
        cores = _most_cores([parts, *shares], spec.cores_per_card)
        read, written = (
            Traffic(bytes=moved, needed=moved, per_core=moved // cores, written=result) for result in (False, True)
        )
        return total_us(Work(kind=CostKind.GATHER, cores=cores, elements=0, operands=(read, written)), p)

    times = {parts: us(parts) for parts in divisors(pieces, spec.cores_per_card)}
    best = min(times, key=lambda parts: (times[parts], parts))
    return best if times[1] - times[best] >= LEAST_GAIN_US else 1


def _most_cores(pieces: Sequence[int], cores: int) -> int:
    """The most cores that can share loops of so many pieces equally."""
    counts = {1}
    for number in pieces:
        counts = {count * split for count in counts for split in divisors(number, cores // count)}
    return max(counts)


__all__ = ["LEAST_GAIN_US", "parts_of_rows"]
