"""Sizes in bytes, and numbers of things."""

from __future__ import annotations

import pytest

from spyre_mlir.sizes import counted, read_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), ("1000", 1000), ("3K", 3072), ("3k", 3072), ("1M", 1048576), ("2G", 2147483648), ("1T", 1099511627776)],
)
def test_a_number_with_or_without_a_unit(text: str, size: int) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["", "0", "0G", "G", "1.5G", "-1", "1KB", "1 G", "²", "٣"])
def test_other_texts_are_no_sizes(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no size such as 800M or 16G"):
        read_size(text)


def test_numbers_of_things() -> None:
    assert [counted(n, "kernel") for n in (0, 1, 2, 1234)] == ["0 kernels", "1 kernel", "2 kernels", "1,234 kernels"]
    assert [counted(n, "launch") for n in (1, 2)] == ["1 launch", "2 launches"]
    assert [counted(n, "kernel", "round") for n in (1, 2)] == ["1 kernel rounds", "2 kernels round"]
