"""Predicted times of a product by itself, and where to cut its columns so that fewer cores read the same of a weight.

Cores that divide rows read the same columns of a weight, which takes longer than one reading where they are many. Cores
that divide columns do not, but 71 sticks of columns have no slices for more than one core.

Decision: docs/decisions/0245-columns-are-cut-where-cores-share-a-weight.md
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from spyre_mlir.hw.cost import CostKind, MatmulLoops, Traffic, Work, total_us
from spyre_mlir.hw.cost_parameters import CostParameters
from spyre_mlir.hw.division import divisors
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.transforms.kernel_plans.kernel_choices import BUSY

# Each product becomes two launches, so the time has to fall that much.
CLEAR_GAIN, LEAST_GAIN_US = 1.2, 5.0
_LANES = DL16.elements_per_stick()
_FEWEST_SHARES = 4  # of the first part: with fewer, as many cores read a weight as before


@dataclass(frozen=True)
class ProductSize:
    """A product of rows with a weight, each loop beside the others.

    Attributes:
        rows, columns, depth: extents of the result's rows and columns, and of the sum.
    """

    rows: int
    columns: int
    depth: int

    @property
    def result_bytes(self) -> int:
        """Device memory of the result in DL16."""
        return self.rows * -(-self.columns // _LANES) * STICK_BYTES


def columns_to_cut(product: ProductSize, spec: SpyreSpec, p: CostParameters, *, leaves: bool) -> int:
    """Return how many columns a first product has if two are clearly quicker than one, else 0.

    Args:
        product: its extents; the weight is in DL16.
        spec: the card.
        p: rates of the cost model.
        leaves: whether the result leaves the program. Any other one may stay in the scratchpads of a plan that does not
            cut it, and two products write it to device memory, where the next kernel reads it.
    """
    sticks = -(-product.columns // _LANES)
    before = alone_us(product, spec, p)
    moved = 0.0 if leaves else 2 * p.memory_us(product.result_bytes)
    best, least = 0, min(before / CLEAR_GAIN, before - LEAST_GAIN_US) - moved
    shares = [n for n in divisors(spec.cores_per_card, spec.cores_per_card) if n >= _FEWEST_SHARES]
    for first in {(sticks - 1) // share * share for share in shares} - {0}:
        columns = first * _LANES
        parts = (replace(product, columns=columns), replace(product, columns=product.columns - columns))
        if (us := sum(alone_us(part, spec, p) for part in parts)) < least:
            best, least = columns, us
    return best


def alone_us(product: ProductSize, spec: SpyreSpec, p: CostParameters) -> float:
    """Return the least predicted time of a product whose operands and result are in device memory, in us.

    As in a plan, no division counts that leaves many of the cores idle which another one has.
    """
    sticks, deep = (-(-extent // _LANES) for extent in (product.columns, product.depth))
    cores, found = spec.cores_per_card, list[tuple[int, float]]()
    for columns in divisors(sticks, cores):
        for rows in divisors(product.rows, cores // columns):
            for depth in divisors(deep, cores // (columns * rows)):
                us = total_us(_work(product, (rows, columns, depth)), p)
                found.append((columns * rows * depth, us))
    most = max(busy for busy, _ in found)
    return min(us for busy, us in found if busy >= int(most * BUSY))


def _work(product: ProductSize, splits: tuple[int, int, int]) -> Work:
    """The product over so many cores of rows, columns and depth."""
    rows, columns, depth = splits
    sticks, deep = (-(-extent // _LANES) for extent in (product.columns, product.depth))
    loops = MatmulLoops(
        batch=1, rows=product.rows, columns=sticks * _LANES, depth=product.depth, splits=(1, rows, columns, depth)
    )
    given, weight = product.rows * deep * STICK_BYTES, product.depth * sticks * STICK_BYTES
    made = product.result_bytes
    return Work(
        kind=CostKind.PRODUCT,
        cores=rows * columns * depth,
        elements=loops.macs,
        operands=(
            Traffic(bytes=given, needed=given, per_core=given // (rows * depth), readers=columns),
            Traffic(bytes=weight, needed=weight, per_core=weight // (columns * depth), readers=rows),
            Traffic(bytes=made, needed=made, per_core=made // (rows * columns), written=True),
        ),
        product=loops,
    )


__all__ = ["ProductSize", "alone_us", "columns_to_cut"]
