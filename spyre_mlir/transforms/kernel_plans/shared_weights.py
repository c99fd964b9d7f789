"""Predicted times of a product by itself, and where to cut its columns so that fewer cores read the same of a weight.

Cores that divide rows read the same columns of a weight, which takes longer than one reading where they are many. Cores
that divide columns do not, but 71 sticks of columns have no slices for more than one core.

Decision: docs/decisions/0250-columns-that-cores-share.md
Decision: docs/decisions/0245-columns-are-cut-where-cores-share-a-weight.md
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from spyre_mlir.hw.cost import CostKind, MatmulLoops, Traffic, Work, total_us
from spyre_mlir.hw.cost_parameters import CostParameters
from spyre_mlir.hw.division import divisors
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.transforms.kernel_plans.kernel_choices import BUSY

# Each product becomes two launches, so the time has to fall that much.
CLEAR_GAIN, LEAST_GAIN_US = 1.2, 5.0
_LANES = DL16.elements_per_stick()
_STICKS_PER_ADDED = 8  # weights take an eighth more device memory at most
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
    def given_bytes(self) -> int:
        """Device memory of the rows that are multiplied, in DL16."""
        return self.rows * -(-self.depth // _LANES) * STICK_BYTES

    @property
    def result_bytes(self) -> int:
        """Device memory of the result in DL16."""
        return self.rows * -(-self.columns // _LANES) * STICK_BYTES


@dataclass(frozen=True)
class Columns:
    """Columns of a product that is quicker than it is.

    Attributes:
        first: of the first of two products; 0 for one product.
        padded: of one product, those without readers among them.
    """

    first: int
    padded: int


@lru_cache(maxsize=1 << 10)  # a program has the same product in every layer
def quicker_columns(product: ProductSize, spec: SpyreSpec, p: CostParameters, *, leaves: bool, room: bool) -> Columns:
    """Return whether two products, or one of more columns, are clearly quicker than one.

    Args:
        product: its extents; the weight is in DL16.
        spec: the card.
        p: rates of the cost model.
        leaves: whether the result leaves the program. Any other one may stay in the scratchpads of a plan that does not
            cut it, and two products write it to device memory, where the next kernel reads it.
        room: whether the weight and the result have room for more columns.
    """
    columns = product.columns
    first, moved = _columns_to_cut(product, spec, p, leaves=leaves), 0.0 if leaves else _moved_us(product, p)
    padded = _padded(product, spec, p) if room else columns
    if first and padded > columns:
        cut_us = sum(alone_us(part, spec, p) for part in _parts(product, first)) + moved
        if _between_us(replace(product, columns=padded), spec, p) < cut_us:
            return Columns(0, padded)
    return Columns(first, columns) if first else Columns(0, padded)


def _columns_to_cut(product: ProductSize, spec: SpyreSpec, p: CostParameters, *, leaves: bool) -> int:
    """How many columns a first product has if two are clearly quicker than one, else 0."""
    sticks = -(-product.columns // _LANES)
    before = alone_us(product, spec, p)
    moved = 0.0 if leaves else 2 * p.memory_us(product.result_bytes)
    best, least = 0, min(before / CLEAR_GAIN, before - LEAST_GAIN_US) - moved
    shares = [n for n in divisors(spec.cores_per_card, spec.cores_per_card) if n >= _FEWEST_SHARES]
    for first in {(sticks - 1) // share * share for share in shares} - {0}:
        if (us := sum(alone_us(part, spec, p) for part in _parts(product, first * _LANES))) < least:
            best, least = first * _LANES, us
    return best


def _parts(product: ProductSize, first: int) -> tuple[ProductSize, ProductSize]:
    return replace(product, columns=first), replace(product, columns=product.columns - first)


def _padded(product: ProductSize, spec: SpyreSpec, p: CostParameters) -> int:
    """How many columns a product between kernels of the same rows has if it is clearly quicker so; else its own."""
    sticks = -(-product.columns // _LANES)
    best, least = product.columns, _between_us(product, spec, p) - LEAST_GAIN_US
    for more in range(sticks + 1, sticks + sticks // _STICKS_PER_ADDED + 1):
        if (us := _between_us(replace(product, columns=more * _LANES), spec, p)) < least:
            best, least = more * _LANES, us
    return best


def alone_us(product: ProductSize, spec: SpyreSpec, p: CostParameters) -> float:
    """Return the least predicted time of a product whose operands and result are in device memory, in us.

    As in a plan, no division counts that leaves many of the cores idle which another one has.
    """
    return min(total_us(_work(product, splits), p) for splits in _busy(product, spec))


def _between_us(product: ProductSize, spec: SpyreSpec, p: CostParameters) -> float:
    """The least predicted time of a product and of the ways to it and from it, in us.

    Cores that divide rows alone find them in their scratchpads, and leave the result there.
    """
    moved = _moved_us(product, p)
    found = list[float]()
    for splits in _busy(product, spec):
        local = splits[1:] == (1, 1)
        found.append(total_us(_work(product, splits, local=local), p) + (0.0 if local else moved))
    return min(found)


def _moved_us(product: ProductSize, p: CostParameters) -> float:
    """The time in which kernels beside a product write what it multiplies, and read what it makes, in us."""
    return p.memory_us(product.given_bytes) + p.memory_us(product.result_bytes)


def _busy(product: ProductSize, spec: SpyreSpec) -> list[tuple[int, int, int]]:
    """Divisions of rows, columns and depth that keep most of the cores busy that any of them has."""
    sticks, deep = (-(-extent // _LANES) for extent in (product.columns, product.depth))
    cores = spec.cores_per_card
    found = [
        (rows, columns, depth)
        for columns in divisors(sticks, cores)
        for rows in divisors(product.rows, cores // columns)
        for depth in divisors(deep, cores // (columns * rows))
    ]
    most = max(prod(splits) for splits in found)
    return [splits for splits in found if prod(splits) >= int(most * BUSY)]


def _work(product: ProductSize, splits: tuple[int, int, int], *, local: bool = False) -> Work:
    """The product over so many cores of rows, columns and depth; whether all but the weight is in the scratchpads."""
    rows, columns, depth = splits
    sticks = -(-product.columns // _LANES)
    loops = MatmulLoops(
        batch=1, rows=product.rows, columns=sticks * _LANES, depth=product.depth, splits=(1, rows, columns, depth)
    )
    given, weight = product.given_bytes, product.depth * sticks * STICK_BYTES
    made = product.result_bytes
    return Work(
        kind=CostKind.PRODUCT,
        cores=rows * columns * depth,
        elements=loops.macs,
        operands=(
            Traffic(bytes=given, needed=given, per_core=given // (rows * depth), readers=columns, local=local),
            Traffic(bytes=weight, needed=weight, per_core=weight // (columns * depth), readers=rows),
            Traffic(bytes=made, needed=made, per_core=made // (rows * columns), written=True, local=local),
        ),
        product=loops,
    )


__all__ = ["Columns", "ProductSize", "alone_us", "quicker_columns"]
