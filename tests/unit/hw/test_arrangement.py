"""The order of elements in sticks, against the published formula written out element by element."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.hw.arrangement import PACKED, STANDARD, WIDENED, as_read, as_stored, block, narrowed, widened


def test_widening_as_published() -> None:
    """Element 64p + 8g + 4h + e stands in stick 2p + h at lane 4g + e."""
    sticks = widened(np.arange(128), 0, 64).reshape(4, 32)
    for p in range(2):
        for g in range(8):
            for h in range(2):
                for e in range(4):
                    assert sticks[2 * p + h, 4 * g + e] == 64 * p + 8 * g + 4 * h + e


def test_narrowing_as_published() -> None:
    """Element 64t + 32h + 4g + e of a standard float32 tensor stands at lane 8g + 4h + e of stick t."""
    lanes = narrowed(np.arange(128), 0, 64).reshape(2, 64)
    for t in range(2):
        for h in range(2):
            for g in range(8):
                for e in range(4):
                    assert lanes[t, 8 * g + 4 * h + e] == 64 * t + 32 * h + 4 * g + e


def test_packing_as_published() -> None:
    """Element 128i + 64h + 8s + e of eight-bit floats stands at lane 16s + 8h + e of stick i."""
    lanes = as_stored(np.arange(256), 0, PACKED).reshape(2, 128)
    for i in range(2):
        for h in range(2):
            for s in range(8):
                for e in range(8):
                    assert lanes[i, 16 * s + 8 * h + e] == 128 * i + 64 * h + 8 * s + e
    assert np.array_equal(as_read(lanes.reshape(-1), 0, PACKED), np.arange(256))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_narrowing_undoes_widening(axis: int) -> None:
    values = np.arange(2 * 64 * 64 * 3).reshape(64, 64, 2 * 3 * 1)
    values = np.moveaxis(values, 0, axis) if axis else values
    values = np.concatenate([values] * 32, axis=2) if axis == 2 else values
    assert np.array_equal(narrowed(widened(values, axis, 64), axis, 64), values)
    assert np.array_equal(as_read(as_stored(values, axis, WIDENED), axis, WIDENED), values)
    assert np.array_equal(as_stored(values, axis, STANDARD), values)


def test_what_stays_together() -> None:
    assert (block(32, STANDARD), block(32, WIDENED), block(64, STANDARD)) == (32, 64, 64)
