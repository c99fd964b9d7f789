"""The front end's published score for dividing a matmul, to compare its choices with ours.

Source: torch-spyre, work_division.py of June 2026; certain. It scores divisions and does not predict times: the
planner and the reports of this compiler use `spyre_mlir.hw.cost`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log2, prod, sqrt

from spyre_mlir.hw.division import divisors
from spyre_mlir.hw.spec import SPYRE

Splits = tuple[int, int, int, int]

ROWS_PER_PASS = 8
WANTED_PASSES = 8
COHORT = 8
MACS_PER_US = 1.536e6
HBM_BYTES_PER_US = 204_800.0
PARTIAL_SUM_US = 1.4e-4
FEW_PASSES_US = 50.0
BATCH_EXPONENT = 1.4
ELEMENT_BYTES = 2


@dataclass(frozen=True)
class ProductShape:
    """Extents of a matmul: batch, rows, columns, depth; columns and depth in whole sticks."""

    batch: int
    rows: int
    columns: int
    depth: int


def split_score(shape: ProductShape, splits: Splits, cores: int = SPYRE.cores_per_card) -> float:
    """Return the score of a division over batch, rows, columns and depth, in microseconds; infinite if impossible."""
    b, m, n, k = splits
    if prod(splits) > cores:
        return inf
    passes = max(1.0, shape.rows / m / ROWS_PER_PASS)
    efficiency = min(1.0, sqrt(passes / WANTED_PASSES))
    macs = shape.batch * shape.rows * shape.columns * shape.depth
    compute = macs / prod(splits) / (MACS_PER_US * efficiency)
    left, right = shape.rows * shape.depth, shape.depth * shape.columns
    result = shape.rows * shape.columns
    moved = ELEMENT_BYTES * shape.batch * (left + right + result)
    memory = moved / HBM_BYTES_PER_US * max(1.0, max(m, n) / COHORT)
    sums = (k - 1) * shape.batch * result * PARTIAL_SUM_US
    few = 0.0 if passes >= WANTED_PASSES else FEW_PASSES_US * log2(WANTED_PASSES / passes)
    return (compute + memory + sums + few) * b**BATCH_EXPONENT


def best_split(shape: ProductShape, lanes: int, cores: int = SPYRE.cores_per_card) -> Splits:
    """Return the division with the lowest score; the first of equals in ascending order."""
    options = [
        (b, m, n, k)
        for b in divisors(shape.batch, cores)
        for m in divisors(shape.rows, cores)
        for n in divisors(shape.columns // lanes, cores)
        for k in divisors(shape.depth // lanes, cores)
    ]
    return min(options, key=lambda splits: split_score(shape, splits, cores))
