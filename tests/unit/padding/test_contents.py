"""What functions and reductions make of padding."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from spyre_mlir.ops.native import pointwise, reductions
from spyre_mlir.ops.table import OpEntry
from spyre_mlir.padding.contents import Content, applied, is_neutral, reduced

ANY = None


@pytest.mark.parametrize(
    ("entry", "operands", "made"),
    [
        (pointwise.add, [2.0, 3.0], 5.0),
        (pointwise.add, [2.0, ANY], ANY),
        (pointwise.add, [ANY, -65504.0], -inf),
        (pointwise.sub, [-65504.0, ANY], -inf),
        (pointwise.sub, [ANY, -65504.0], ANY),
        (pointwise.exp, [-inf], 0.0),
        (pointwise.exp, [ANY], ANY),
        (pointwise.mul, [ANY, 0.0], 0.0),
        (pointwise.mul, [ANY, 2.0], ANY),
        (pointwise.div, [0.0, ANY], 0.0),
        (pointwise.div, [ANY, 0.0], ANY),
        (pointwise.where, [0.0, ANY, 7.0], 7.0),
        (pointwise.where, [1.0, ANY, 7.0], ANY),
        (pointwise.where, [ANY, 7.0, 7.0], 7.0),
        (pointwise.where, [ANY, 7.0, 8.0], ANY),
        (pointwise.sub, [inf, inf], ANY),  # no number
        (None, [3.0], 3.0),
    ],
)
def test_functions(entry: OpEntry | None, operands: list[Content], made: Content) -> None:
    assert applied(entry, operands, {}) == made


@pytest.mark.parametrize(
    ("entry", "content", "neutral"),
    [
        (reductions.sum, 0.0, True),
        (reductions.sum, 1.0, False),
        (reductions.sum, ANY, False),
        (reductions.amax, -inf, True),
        (reductions.amax, -65504.0, True),
        (reductions.amax, -100.0, False),
        (reductions.amax, ANY, False),
        (reductions.amin, 65504.0, True),
        (reductions.amin, 0.0, False),
    ],
)
def test_reductions(entry: OpEntry, content: Content, neutral: bool) -> None:
    assert is_neutral(entry, content) is neutral
    kept = neutral or entry is not reductions.sum  # the largest of equal numbers is this number
    assert reduced(entry, content) == (content if kept else ANY)


def test_limits_of_the_other_elements() -> None:
    """No element is above the largest number, so it is neutral to the least; 0 is to the largest of truth values."""
    assert is_neutral(reductions.amax, 0.0, (0.0, 1.0))
    assert not is_neutral(reductions.amax, 1.0, (0.0, 1.0))
    assert is_neutral(reductions.amin, 1.0, (0.0, 1.0))
    assert not is_neutral(reductions.amin, 0.0, (0.0, 1.0))
    assert not is_neutral(reductions.sum, 1.0, (0.0, 1.0))
    assert not is_neutral(reductions.amax, ANY, (0.0, 1.0))


@pytest.mark.parametrize(("number", "made"), [(3.0, 0.0), (2.0, ANY), (ANY, ANY)])
def test_a_constant_of_several_numbers(number: Content, made: Content) -> None:
    """A place behind all others is equal to none of them."""
    assert applied(pointwise.eq, [number, np.arange(3)], {}) == made
    assert applied(pointwise.where, [ANY, number, np.arange(3)], {}) is ANY
