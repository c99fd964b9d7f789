"""The score by which torch-spyre's planner chooses the division of a matmul: predicted microseconds and preferences.

It ranks divisions of one matmul and predicts no time; `spyre_mlir.hw.cost` predicts. All constants are those of
torch-spyre, work_division.py of October 2026 (before: June 2026, with other exponents); certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2, prod

Splits = tuple[int, int, int, int]
"""Slices of batch, rows, columns and depth."""

MACS_PER_CORE_US = 1.536e6
HBM_BYTES_PER_US = 204_800.0
# A core is fast with so many rows; from there to the lower number it slows down with the exponent, and then no more.
FULL_RATE_ROWS, LEAST_RATE_ROWS = 40, 8
ROWS_EXPONENT = 0.25
DIVIDED_DEPTH_FACTOR = 2.0  # one of two corelets works
# Cores that ask for the same operand: so many do not disturb each other.
UNDISTURBED_CORES = 8
DISTURBANCE_EXPONENT = 0.75
PARTIAL_SUM_SHARED_US, PARTIAL_SUM_BATCHED_US = 1e-3, 1e-4  # per element and further slice of the depth

# Preferences: microseconds per halving below (or doubling beyond) a wanted number.
FEW_ROW_SLICES_US = 10.0
LEAST_ROW_SLICES, ROWS_PER_WANTED_SLICE = 4, 32
FEW_ROWS_US, WANTED_ROWS = 30.0, 16
WIDE_SLICE_US, WIDEST_SLICE_COLUMNS = 25.0, 512
BATCHED_DEEP_US, SHARED_DEEP_US = 20.0, 10.0
NARROW_WEIGHT_US, WIDE_WEIGHT_COLUMNS, WANTED_SLICE_COLUMNS = 5.0, 4096, 128
IDLE_CORES_US = 150.0
BATCH_SLICES_US = 10.0


@dataclass(frozen=True, kw_only=True)
class ProductShape:
    """Sizes of a matmul in elements, padded to whole sticks.

    Attributes:
        batch: extent of the batch.
        rows: extent of the rows.
        columns: extent of the columns.
        depth: extent of the sum.
        shared: whether all of the batch has the same weight.
        input_bytes: bytes per element of the operands.
        output_bytes: bytes per element of the result.
    """

    batch: int = 1
    rows: int
    columns: int
    depth: int
    shared: bool = True
    input_bytes: int = 2
    output_bytes: int = 2


@dataclass(frozen=True)
class RivalScore:
    """Score of a division, in microseconds: three times that add up, and preferences."""

    compute: float
    hbm: float
    partial_sums: float
    preferences: float

    @property
    def total(self) -> float:
        """Sum that divisions are compared by; the lowest is best."""
        return self.compute + self.hbm + self.partial_sums + self.preferences


def rival_score(shape: ProductShape, splits: Splits, cores: int) -> RivalScore:
    """Return the score of a division of a matmul on a card of so many cores."""
    return RivalScore(
        _compute_us(shape, splits),
        _hbm_us(shape, splits),
        _partial_sums_us(shape, splits),
        _preferences_us(shape, splits, cores),
    )


def _compute_us(shape: ProductShape, splits: Splits) -> float:
    rows = shape.rows // splits[1]
    slow = (FULL_RATE_ROWS / min(max(rows, LEAST_RATE_ROWS), FULL_RATE_ROWS)) ** ROWS_EXPONENT
    macs = shape.batch * shape.rows * shape.columns * shape.depth / prod(splits)
    return macs / MACS_PER_CORE_US * slow * (DIVIDED_DEPTH_FACTOR if splits[3] > 1 else 1.0)


def _hbm_us(shape: ProductShape, splits: Splits) -> float:
    left, right = shape.batch * shape.rows * shape.depth, shape.depth * shape.columns
    weights = right if shape.shared else shape.batch * right
    result = shape.batch * shape.rows * shape.columns
    moved = (left + weights) * shape.input_bytes + result * shape.output_bytes
    _, m, n, _ = splits
    readers = max(m, n) if shape.shared else n
    return moved / HBM_BYTES_PER_US * max(1.0, (readers / UNDISTURBED_CORES) ** DISTURBANCE_EXPONENT)


def _partial_sums_us(shape: ProductShape, splits: Splits) -> float:
    b, m, n, k = splits
    each = PARTIAL_SUM_SHARED_US if shape.shared else PARTIAL_SUM_BATCHED_US
    return (k - 1) * shape.batch * shape.rows * shape.columns / (b * m * n) * each


def _preferences_us(shape: ProductShape, splits: Splits, cores: int) -> float:
    b, m, n, _ = splits
    rows, columns = shape.rows // m, shape.columns // n
    wanted = max(LEAST_ROW_SLICES, min(cores / 2, max(1.0, shape.rows / ROWS_PER_WANTED_SLICE)))
    score = FEW_ROW_SLICES_US * _doublings(wanted / m) + FEW_ROWS_US * _doublings(WANTED_ROWS / rows)
    score += WIDE_SLICE_US * _doublings(columns / WIDEST_SLICE_COLUMNS) + IDLE_CORES_US * _doublings(
        cores / prod(splits)
    )
    deep = _doublings(shape.depth / shape.columns) * log2(n)
    if shape.shared:
        score += SHARED_DEEP_US * deep
        if rows >= WANTED_ROWS:
            narrow = _doublings(WIDE_WEIGHT_COLUMNS / shape.columns)
            score += NARROW_WEIGHT_US * narrow * _doublings(columns / WANTED_SLICE_COLUMNS)
        return score
    if rows >= WANTED_ROWS:
        score += BATCHED_DEEP_US * deep
    return score + BATCH_SLICES_US * log2(b)


def _doublings(ratio: float) -> float:
    """How many doublings a ratio is above 1."""
    return max(0.0, log2(ratio))
