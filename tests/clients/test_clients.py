"""Models of packages that users of Spyre run compile as they are; the kept rows are complete and within tolerance."""

from __future__ import annotations

import pytest

from tests.clients.catalogue import CATALOGUE, DISTRIBUTIONS, version_of
from tests.clients.notes import NOTES
from tests.clients.page import FILE, load, page_text

EXACT, DEVICE, LARGE = 1e-4, 0.05, 0.01
GROUPED = ("torchvision/resnext50_32x4d", "torchvision/regnet_y_400mf", "transformers/efficientnet_b0")
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


def test_large_errors_and_steps_of_the_host_are_explained() -> None:
    rows = load()
    for name, row in rows.items():
        assert bool(row.reasons) == bool(row.host), name
        assert name in NOTES or row.device is None or row.device <= LARGE, f"{name}: say why in tests/clients/notes.py"
    assert [name for name in NOTES if (rows[name].device or 0) <= LARGE and not rows[name].host] == []


@pytest.mark.parametrize("package", ["torchvision", "timm", "transformers", "diffusers"])
def test_packages_have_ten_models_at_published_widths(package: str) -> None:
    smaller = [entry.smaller for entry in CATALOGUE.values() if entry.package == package]
    assert sum(map(bool, smaller)) >= 10


def test_grouped_and_depthwise_convolutions_and_average_pooling_need_no_host() -> None:
    """At the widths where ResNeXt-50 had 7 steps of the host once, RegNet 6 and an EfficientNet 1."""
    rows = load()
    assert [rows[name].host for name in GROUPED] == [0] * len(GROUPED)


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
