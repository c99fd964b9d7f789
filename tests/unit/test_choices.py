"""Values of options: read from the text after a flag, and refused where an option has no such value."""

from __future__ import annotations

import pytest

from spyre_mlir.choices import check_max_size, check_names, read_max_size, read_names
from spyre_mlir.errors import InputError


def test_names_are_read_from_text() -> None:
    assert read_names("layers.0.norm, head,,") == ("layers.0.norm", "head")
    assert read_names("") == ()


def test_the_largest_size_is_a_number_or_a_word() -> None:
    assert [read_max_size(text) for text in ("64", "known")] == [64, "known"]
    for text in ("-1", "1.5", "\u0663", "most"):  # numbers of another script are none
        with pytest.raises(InputError, match="max_size must be a number above 0, 'known' or None, got"):
            check_max_size(read_max_size(text))


def test_sizes_that_an_option_has_not() -> None:
    for size in (None, "known", 1, 4096):
        check_max_size(size)
    for size in (0, -3, True, 2.0, "all"):
        with pytest.raises(InputError, match=f"got {size!r}"):
            check_max_size(size)


def test_names_are_a_tuple_of_texts() -> None:
    check_names("keep_float32_in", ())
    check_names("keep_float32_in", ("layers.0.norm",))
    for names in ("layers.0.norm", ["head"], ("head", ""), (1,)):
        with pytest.raises(InputError, match=r"a tuple of names, got .*\n  try: keep_float32_in="):
            check_names("keep_float32_in", names)
