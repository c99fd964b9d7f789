"""Pairs of 4-bit integers come back from bytes; words have digits, the first with its sign, others without."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.hw.few_bits import BYTE, NIBBLE, Words, fits, metadata, names_in, packed, unpacked


def test_a_word_is_its_digits_by_hand() -> None:
    digits = np.array([[1], [-128], [127], [0]], np.int8)
    assert Words(BYTE).apply(digits).tolist() == [0x0100FF80]
    nibbles = np.array([[-8], [-8], [-8], [-8], [-8], [-8], [-8], [7]], np.int8)
    assert Words(NIBBLE).apply(nibbles).tolist() == [-(2**31) + 15]


@pytest.mark.parametrize("bits", [BYTE, NIBBLE])
def test_the_least_and_the_largest_digits_fill_the_range(bits: int) -> None:
    words = Words(bits)
    least, largest = (np.full((words.count, 1), n, np.int8) for n in (words.least, -words.least - 1))
    assert words.apply(least).tolist() == [-(2**31)]
    assert words.apply(largest).tolist() == [2**31 - 1]
    assert words.apply(least).dtype == np.int32


@pytest.mark.parametrize("bits", [BYTE, NIBBLE])
def test_words_of_other_digits_are_other_words(bits: int) -> None:
    words = Words(bits)
    digits = np.random.default_rng(bits).integers(words.least, -words.least, (words.count, 1000)).astype(np.int8)
    found = words.apply(digits).astype(np.int64)
    wanted = sum(
        (int(number > 0) * -words.least + digits[number].astype(np.int64)) << bits * (words.count - 1 - number)
        for number in range(words.count)
    )
    np.testing.assert_array_equal(found, wanted)


def test_truth_values_of_words_are_those_of_any_digit() -> None:
    unknown = np.array([[False, True], [False, False], [False, False], [False, False]])
    assert Words(BYTE).apply(unknown).tolist() == [False, True]


def test_numbers_of_more_bits_and_other_counts_are_refused() -> None:
    with pytest.raises(OverflowError, match="-8 to 8 are not all digits of 4 bits, -8 to 7"):
        Words(NIBBLE).apply(np.array([[-8], [8], [0], [0], [0], [0], [0], [0]], np.int8))
    with pytest.raises(ValueError, match=r"words of 8-bit digits take a first dimension of 4, got \(3, 2\)"):
        Words(BYTE).apply(np.zeros((3, 2), np.int8))


def test_digits_are_those_between_their_bounds() -> None:
    assert Words(NIBBLE).holds(-8, 7)
    assert not Words(NIBBLE).holds(-9, 7)
    assert not Words(NIBBLE).holds(-8, 8)


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
