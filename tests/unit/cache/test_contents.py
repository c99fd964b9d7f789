"""The cache in Python: an entry that compiling makes is counted, found by another process, and removed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.errors import InputError

PROGRAM = "import torch, spyre_mlir; m = spyre_mlir.compile(torch.nn.ReLU(), (torch.ones(2, 4),)); print(m.cached)"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPYRE_MLIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SPYRE_MLIR_CACHE_SIZE", "2M")
    return tmp_path / "cache"


def compiled() -> spyre_mlir.CompiledModel:
    made = spyre_mlir.compile(nn.ReLU(), (torch.ones(2, 4),))
    assert isinstance(made, spyre_mlir.CompiledModel)
    return made


def test_an_entry_is_counted_and_removed(directory: Path) -> None:
    empty = spyre_mlir.cache_info()
    assert (empty.directory, empty.entries, empty.size, empty.limit) == (directory, 0, 0, 2 << 20)
    assert not compiled().cached
    (entry,) = directory.iterdir()
    held = spyre_mlir.cache_info()
    assert (held.entries, held.size) == (1, entry.stat().st_size)
    assert str(held) == f"{directory}: 1 entries, {held.size:,} of 2,097,152 bytes"
    assert str(directory) in held._repr_html_()
    assert compiled().cached
    other = directory / "notes.txt"
    other.write_text("not ours")
    assert spyre_mlir.clear_cache() == held
    assert list(directory.iterdir()) == [other]
    assert spyre_mlir.cache_info() == empty
    assert not compiled().cached


def test_an_entry_of_another_process_is_found_by_python_and_the_tool(directory: Path, python: list[str]) -> None:
    def out(*words: str) -> str:
        return subprocess.run([*python, *words], capture_output=True, text=True, check=True).stdout

    assert out("-c", PROGRAM) == "False\n"
    assert compiled().cached
    assert out("-c", PROGRAM) == "True\n"
    tool = ["-c", "import sys; from spyre_mlir.cli.start import spyre_compile; sys.exit(spyre_compile())"]
    assert "entries\t1\n" in out(*tool, "--cache-info")
    assert "removed entries\t1\n" in out(*tool, "--clear-cache")
    assert out("-c", PROGRAM) == "False\n"


def test_a_cache_that_is_off_holds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPYRE_MLIR_CACHE", "off")
    for found in (spyre_mlir.cache_info(), spyre_mlir.clear_cache()):
        assert (found.directory, found.entries, found.size) == (None, 0, 0)
        assert str(found) == "the cache is off"
    assert not compiled().cached
    assert not compiled().cached


def test_an_entry_that_cannot_be_removed_is_named(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("spyre_mlir.cache.store.Store.clear", fail)
    with pytest.raises(InputError, match="the cache cannot be emptied: Permission denied") as caught:
        spyre_mlir.clear_cache()
    assert str(directory) in str(caught.value)
