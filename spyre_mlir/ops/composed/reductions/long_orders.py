"""Orderings of long rows: ranks block by block, and places by two digits.

A square of comparisons of thousands of elements is larger than all scratchpads. Two tricks keep it out of the device
memory. Ranks are counted in blocks: an element has before it those of earlier blocks that are level or ahead, those
of later blocks that are ahead, and only in its own block do positions decide between equals. And elements go to their
places by two digits of their ranks, see `placing`.

Decision: docs/decisions/0237-long-rows-are-ordered-in-blocks.md
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from spyre_mlir.ops.annotations import INF
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.placing import BLOCK, DIGIT, placed
from spyre_mlir.ops.helpers.reduction_dims import without_nan
from spyre_mlir.ops.helpers.slicing import joined, part, reshaped
from spyre_mlir.ops.value import Value

# Elements of a block whose first few are put in order with those of the other blocks.
PART = 256
# Comparisons at once: three times as many 16-bit numbers lie in the scratchpads.
AT_ONCE = 2**23

Pair = tuple[Value, Value]


def ordered(b: Build, value: Value, *, descending: bool, first: int, count: int) -> Pair:
    """[rows, count]: the elements of [rows, n] of rank first, first + 1, …, and where they stood."""
    filled = _whole_blocks(b, value, descending)
    tall = filled.shape[1] // DIGIT
    low = b.iota(DIGIT, "f16").unsqueeze(0).expand(tall, DIGIT)
    high = b.iota(tall, "f16").unsqueeze(1).expand(tall, DIGIT)
    digits = [reshaped(d, (1, tall * DIGIT)) for d in (low, high)]
    values, (lows, highs) = _taken(b, filled, digits, descending, first, count)
    return values, b.cast(highs, "i64") * DIGIT + b.cast(lows, "i64")


def first_of_blocks(b: Build, value: Value, *, descending: bool, count: int) -> Pair:
    """[rows, count]: the first elements of [rows, n], and where they stood.

    They are among the first of each block, which are put in order once more.
    """
    rows, extent = value.shape
    blocks, kept = -(-extent // PART), -(-count // DIGIT) * DIGIT  # whole sticks stay where they are
    best, (place,) = _of_parts(b, value, [b.iota(PART, "f16").unsqueeze(0)], descending, kept)
    block = b.iota(blocks, "f16").view(1, blocks, 1).expand(rows, blocks, kept)
    where = [place, reshaped(block, best.shape)]
    while best.shape[1] > 2 * BLOCK:
        best, where = _of_parts(b, best, where, descending, kept)
    filled = _whole_blocks(b, best, descending)
    extras = [_with_zeros(b, w, filled.shape[1]) for w in where]
    values, (place, block) = _taken(b, filled, extras, descending, 0, count)
    return values, b.cast(block, "i64") * PART + b.cast(place, "i64")


def _of_parts(
    b: Build, value: Value, extras: Sequence[Value], descending: bool, count: int
) -> tuple[Value, list[Value]]:
    """[rows, parts * count]: the first elements of each part of [rows, n], and what goes with them.

    Extras, [rows, n] or [1, PART] for all parts alike, are finite numbers in half precision.
    """
    rows, extent = value.shape
    parts = -(-extent // PART)
    lines = reshaped(_filled(b, value, parts * PART, descending), (rows * parts, PART))
    others = [e if e.shape == (1, PART) else reshaped(_with_zeros(b, e, parts * PART), lines.shape) for e in extras]
    at_once = max(1, AT_ONCE // PART**2)
    found = list[tuple[Value, ...]]()
    for start in range(0, rows * parts, at_once):
        end = min(start + at_once, rows * parts)
        some, *given = (v if v.shape[0] == 1 else part(b, v, 0, start, end) for v in (lines, *others))
        out, taken = _taken(b, some, given, descending, 0, count)
        found.append((out, *taken))
    best, *where = (reshaped(joined(b, v, 0), (rows, parts * count)) for v in zip(*found, strict=True))
    return best, where


def _whole_blocks(b: Build, value: Value, descending: bool) -> Value:
    """[rows, n] filled up to equal blocks of whole sticks."""
    extent = value.shape[1]
    count = -(-extent // BLOCK)
    return _filled(b, value, count * -(-extent // (count * DIGIT)) * DIGIT, descending)


def _filled(b: Build, value: Value, extent: int, descending: bool) -> Value:
    """[rows, extent]: the elements, and behind them some that no order puts before any of them."""
    rows, count = value.shape
    if count == extent:
        return value
    if value.is_float:
        last = b.full((1, 1), -INF if descending else nan, value.element)
    else:
        last = b.call("amin" if descending else "amax", value, dim=(1,), keepdim=True)
    return joined(b, [value, last.expand(rows, extent - count)], 1)


def _with_zeros(b: Build, value: Value, extent: int) -> Value:
    rows, count = value.shape
    zeros = b.full((1, 1), 0, value.element).expand(rows, extent - count)
    return joined(b, [value, zeros], 1)


def _taken(
    b: Build, value: Value, extras: Sequence[Value], descending: bool, first: int, count: int
) -> tuple[Value, list[Value]]:
    """[rows, count]: the elements of rank first, first + 1, … of [rows, n], whole blocks, and what goes with them.

    Extras, [rows or 1, n], are finite numbers in half precision.
    """
    ranks = _ranks(b, value, descending)
    return placed(b, value, extras, ranks - first if first else ranks, count)


def _ranks(b: Build, value: Value, descending: bool) -> Value:
    """[rows, n]: how many go before each element of a row; of equal ones the first goes first, NaN is the largest."""
    rows, extent = value.shape
    count = -(-extent // BLOCK)
    blocks = reshaped(value, (rows, count, extent // count))
    key = without_nan(blocks)
    found = _of_own_block(b, blocks, key, descending)
    if count > 1:
        found = found + _of_other_blocks(b, key, descending)
    if count > 1 and value.is_float:
        found = found + _between_nan_and_infinity(b, blocks, descending)
    return reshaped(found, (rows, extent))


def _of_own_block(b: Build, blocks: Value, key: Value, descending: bool) -> Value:
    """[rows, blocks, size]: how many of its block go before each element."""
    size = key.shape[2]
    place = b.iota(size, "i64")
    if blocks.is_float:
        # NaN and infinity have the same key: NaN is level with none but NaN.
        before = b.iota(size, "i64", start=-size)
        first, last = (before, place) if descending else (place, before)
        place = blocks.ne(blocks).where(first, last)
    earlier = place.unsqueeze(-2).lt(place.unsqueeze(-1))
    level, ahead = _compared(key.unsqueeze(2), key.unsqueeze(3), descending)
    return b.cast(earlier.where(level, ahead), "i64").sum(3)


def _compared(other: Value, own: Value, descending: bool) -> Pair:
    """Where others are level with own elements or go before them, and where they go before them."""
    return (other.ge(own), other.gt(own)) if descending else (other.le(own), other.lt(own))


def _of_other_blocks(b: Build, key: Value, descending: bool) -> Value:
    """[rows, blocks, size]: how many of the other blocks go before each element."""
    count, others, found = key.shape[1], key.unsqueeze(2), list[Value]()
    for at in range(count):
        own = part(b, key, 1, at, at + 1).unsqueeze(3)
        counts = [
            b.cast(_compared(part(b, others, 1, start, end), own, descending)[later], "i64").sum(3)
            for start, end, later in ((0, at, 0), (at + 1, count, 1))
            if start < end
        ]
        found.append(joined(b, counts, 1).sum(1, keepdim=True))
    return joined(b, found, 1)


def _between_nan_and_infinity(b: Build, blocks: Value, descending: bool) -> Value:
    """[rows, blocks, size]: what counts of other blocks lack, where NaN and infinity have the same key.

    In descending order an infinity has all NaN of later blocks before it, and NaN no infinities of earlier blocks.
    """
    nans, ends = blocks.ne(blocks), blocks.eq(INF)
    front, back = (nans, ends) if descending else (ends, nans)
    none = b.full((), 0, "i64")
    gained, lost = _in_other_blocks(b, front, later=True), _in_other_blocks(b, back, later=False)
    return back.where(gained, none) - front.where(lost, none)


def _in_other_blocks(b: Build, truths: Value, *, later: bool) -> Value:
    """[rows, blocks, 1]: how many truths the later blocks have, or the earlier ones."""
    count = truths.shape[1]
    own, other = b.iota(count, "i64").unsqueeze(1), b.iota(count, "i64")
    taken = other.gt(own) if later else other.lt(own)
    return taken.where(b.cast(truths, "i64").sum(2).unsqueeze(1), 0).sum(2, keepdim=True)
