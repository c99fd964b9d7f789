"""Models of packages that users of Spyre run compile as they are; the kept rows are complete and within tolerance."""

from __future__ import annotations

import pytest

from tests.clients.catalogue import CATALOGUE, DISTRIBUTIONS, version_of
from tests.clients.page import FILE, load, page_text

EXACT, DEVICE = 1e-4, 0.05
# Models with trouble, by the first words of it. Whoever mends one takes it off.
TROUBLE: dict[str, str] = {}


def test_every_model_has_a_row() -> None:
    assert list(load()) == list(CATALOGUE), "try: python -m tests.clients"


def test_rows_without_trouble_are_within_tolerance() -> None:
    for name, row in load().items():
        if not row.trouble:
            assert row.exact is not None and row.exact <= EXACT, name
            assert row.device is not None and 0 < row.device <= DEVICE, name
            assert row.kernels > 0, name


def test_trouble_is_known() -> None:
    troubled = {name: row.trouble for name, row in load().items() if row.trouble}
    assert sorted(troubled) == sorted(TROUBLE)
    for name, words in TROUBLE.items():
        assert troubled[name].startswith(words), name


def test_a_row_says_which_version_it_is_of() -> None:
    assert all(row.version and row.code for row in load().values())


def test_the_page_is_of_the_rows() -> None:
    assert FILE.read_text(encoding="utf-8") == page_text(load()), "try: python -m tests.clients --page"


@pytest.mark.slow(reason="compiles models of six packages, where they are installed")
@pytest.mark.parametrize("name", CATALOGUE)
def test_a_model_is_as_its_row_says(name: str) -> None:
    package = CATALOGUE[name].package
    if not version_of(package):
        pytest.skip(f"{DISTRIBUTIONS[package]} is not installed")
    from tests.clients.examine import row_of

    row = row_of(name)
    print(row)
    assert row.trouble.startswith(TROUBLE[name]) if name in TROUBLE else row.trouble == ""
