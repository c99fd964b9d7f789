"""Tests of one model follow one another, so that they share what compiling it once gives."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


def _model(item: pytest.Item) -> str:
    return (
        item.callspec.params.get("name", "") if isinstance(item, pytest.Function) and hasattr(item, "callspec") else ""
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = [n for n, item in enumerate(items) if item.path.is_relative_to(HERE)]
    ordered = sorted((items[n] for n in places), key=_model)
    for place, item in zip(places, ordered, strict=True):
        items[place] = item
