"""Every number of a SuperDSC file, one after another, is something else: a run ends done, or in a named error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spyre_mlir.cli.run import run
from tests.paths import DATA

FILES = sorted((DATA / "superdsc_worked").glob("*.json"))
OTHERS = (10**30, 2**63, -128, 10**15)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in items:
        yield from places(member, (*path, key))
    if (isinstance(value, (int, float)) and not isinstance(value, bool)) or (
        isinstance(value, str) and value.lstrip("-").isdigit()
    ):
        yield path


def one_per_field(text: str) -> list[tuple[Any, ...]]:
    """The first place of every field, whatever the core or the number in a list."""
    found: dict[str, tuple[Any, ...]] = {}
    for path in places(json.loads(text)):
        words = [str(k) for k in path[1:] if not isinstance(k, int) and not re.fullmatch(r"\[?[\d, ]+\]?", str(k))]
        found.setdefault(".".join(words), path)
    return list(found.values())


def with_other(text: str, path: tuple[Any, ...], number: int) -> str:
    value = holder = json.loads(text)
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = str(number) if isinstance(holder[path[-1]], str) else number
    return json.dumps(value)


@pytest.mark.parametrize("number", OTHERS[:2])
def test_an_address_that_no_card_has(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, path = FILES[0].read_text(), tmp_path / "sdsc_0.json"
    place = next(p for p in one_per_field(text) if {"startAddressCoreCorelet_", "data_"} <= {*p})
    path.write_text(with_other(text, place, number))
    assert run(["--no-check", str(path)]) in (1, 3)
    assert "address" in capsys.readouterr().err


@pytest.mark.slow(reason="every number of every file")
@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_any_number_is_another(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, path = file.read_text(), tmp_path / "sdsc_0.json"
    fields = one_per_field(text)
    assert len(fields) > 20
    for place in fields:
        for number in OTHERS:
            path.write_text(with_other(text, place, number))
            code = run(["--no-check", str(path)])
            assert code in (0, 1, 2, 3), (place, number, capsys.readouterr().err)
