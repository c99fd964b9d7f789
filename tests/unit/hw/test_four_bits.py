"""Two 4-bit integers a byte: every pair comes back, and only tensors of such numbers are packed."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.hw.four_bits import fits, metadata, names_in, packed, unpacked


def every_pair() -> np.ndarray:
    """[256, 32] bytes: each row has one of the 256 pairs of numbers."""
    low, high = np.meshgrid(np.arange(-8, 8), np.arange(-8, 8))
    return np.stack([low, high], -1).reshape(256, 2).astype(np.int8).repeat(16, 0).reshape(256, 32)


def test_every_pair_comes_back() -> None:
    value = every_pair()
    assert fits(value)
    held = np.concatenate(list(packed(value)))
    assert held.dtype == np.uint8
    assert held.size == value.size // 2
    np.testing.assert_array_equal(unpacked(held.reshape(256, 16)), value)


def test_the_first_of_two_is_in_the_low_bits() -> None:
    value = np.tile(np.array([1, -1], np.int8), 4096)
    assert next(iter(packed(value)))[0] == 0xF1


@pytest.mark.parametrize(
    "value",
    [
        np.full((64, 64), 8, np.int8),
        np.full((64, 64), -9, np.int8),
        np.zeros((64, 65), np.int8),
        np.zeros((2, 2), np.int8),
        np.zeros((64, 64), np.uint8),
        np.zeros((64, 64), np.int16),
        np.zeros((0, 64), np.int8),
        np.array(3, np.int8),
    ],
)
def test_other_tensors_stay_as_they_are(value: np.ndarray) -> None:
    assert not fits(value)


def test_one_larger_number_at_the_end_is_seen() -> None:
    value = np.zeros((64, 64), np.int8)
    value[-1, -1] = 8
    assert not fits(value)


def test_names_go_through_metadata() -> None:
    assert names_in(metadata(["b", "a"])) == {"a", "b"}
    assert metadata([]) == {}
    assert names_in(None) == set()
