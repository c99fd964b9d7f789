"""Elements that go to places of their own in long rows, by two digits of the numbers of their places.

Zeros and ones that say which first digit an element has, with the element in place of ones, times zeros and ones that
say which second, are all places at once. Each sum has one term that is not 0, so nothing is rounded.

Decision: docs/decisions/0237-long-rows-are-ordered-in-blocks.md
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

from spyre_mlir.ops.annotations import INF
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import joined, part, reshaped
from spyre_mlir.ops.value import Value

# The device counts to it in 16 bits: counts of a block are exact without float32.
BLOCK = 1024
# Places that the second digit tells apart: those of a stick.
DIGIT = 64
HALVES = ("f16", "bf16")


def placed(b: Build, value: Value, extras: Sequence[Value], places: Value, count: int) -> tuple[Value, list[Value]]:
    """[rows, count]: the elements of [rows, n] at their places, 0 at places without one, and what goes with them.

    Args:
        b: what builds.
        value: the elements.
        extras: [rows or 1, n] of finite numbers in half precision.
        places: [rows, n] whole numbers, no two of a row alike but those outside: these elements go nowhere.
        count: of places.
    """
    if value.element not in HALVES:
        return _selected(b, value, places, count), _multiplied(b, places, extras, count)
    plain, kind = value, b.full((), 0, "f16")
    for number, holds in enumerate((value.eq(INF), value.eq(-INF), value.ne(value)), start=1):
        plain, kind = holds.where(0.0, plain), holds.where(b.full((), number, "f16"), kind)
    if plain.element == "f16":
        out, marks, *others = _multiplied(b, places, [plain, kind, *extras], count)
    else:
        (out,), (marks, *others) = (_multiplied(b, places, v, count) for v in ([plain], [kind, *extras]))
    for number, stand_in in enumerate((INF, -INF, nan), start=1):
        out = marks.eq(number).where(stand_in, out)
    return out, others


def _selected(b: Build, value: Value, places: Value, count: int) -> Value:
    """Elements with more digits than products keep, selected in blocks of places."""
    parts = list[Value]()
    for start in range(0, count, BLOCK):
        place = b.iota(min(BLOCK, count - start), "i64", start=start).unsqueeze(1)
        hits = places.unsqueeze(1).eq(place)
        parts.append(hits.where(value.unsqueeze(1), b.full((), 0, value.element)).sum(2))
    return joined(b, parts, 1)


def _multiplied(b: Build, places: Value, payloads: Sequence[Value], count: int) -> list[Value]:
    """[rows, count]: of each payload [rows or 1, n], all of a type, the elements at their places."""
    if not payloads:
        return []
    rows, extent = places.shape
    numbers = b.cast(places, "f32")
    if count <= DIGIT:
        hits = numbers.unsqueeze(1).eq(b.iota(count, "f32").unsqueeze(1))
        return [hits.where(p.unsqueeze(1), 0.0).sum(2) for p in payloads]
    tall, several = -(-count // DIGIT), len(payloads)
    high = (numbers * (1 / DIGIT)).floor()
    hits = b.cast(high, "f16").unsqueeze(1).eq(b.iota(tall, "f16").unsqueeze(1))
    column = numbers.unsqueeze(2)
    low = column - (column * (1 / DIGIT)).floor() * DIGIT
    ones = b.cast(low, "f16").eq(b.iota(DIGIT, "f16"))
    stacked = joined(b, [p.expand(rows, extent).unsqueeze(1) for p in payloads], 1)
    chosen = reshaped(hits.unsqueeze(1).where(stacked.unsqueeze(2), 0.0), (rows, several * tall, extent))
    squares = reshaped(chosen @ b.cast(ones, like=stacked), (rows, several, tall * DIGIT))
    return [part(b, part(b, squares, 1, i, i + 1).squeeze(1), 1, 0, count) for i in range(several)]
