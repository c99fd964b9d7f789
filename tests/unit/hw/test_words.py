"""Words: digits of 8 or 4 bits in 32-bit integers, the first with its sign, the others with half their range added."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.hw.words import BYTE, NIBBLE, Words


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
