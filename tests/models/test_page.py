"""The page of the zoo is of the rows kept, and none of them disagrees."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")

from tests.models.page import FILE, load, page_text
from tests.models.zoo import ZOO


def test_the_page_is_of_the_rows() -> None:
    assert FILE.read_text(encoding="utf-8") == page_text(load()), "try: python -m tests.models --page"


# Whoever mends one takes it off.
DISAGREE = {"activations", "mixtral"}


def test_rows_agree() -> None:
    rows = load()
    assert list(rows) == [name for name in ZOO if name in rows]
    assert {name for name, row in rows.items() if row.trouble} == DISAGREE


def test_decoders_stay_on_the_device() -> None:
    rows = load()
    assert {name for name in rows if ZOO[name].tags & {"decoder", "moe", "ssm"} and rows[name].host} == set()
