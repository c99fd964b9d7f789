"""`spyre-compile --cache-info` and `--clear-cache`, and the cache of the tool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from spyre_mlir.cli import compile as compile_tool

Refused = Callable[..., str]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SPYRE_MLIR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("SPYRE_MLIR_CACHE_SIZE", "2M")
    return tmp_path / "cache"


def run(*words: object) -> None:
    assert compile_tool.run([str(word) for word in words]) == 0


def shown(capsys: Capture, *words: str) -> dict[str, str]:
    capsys.readouterr()
    run(*words)
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["what", "value"]
    return dict(lines[1:])


def test_what_the_cache_holds(saved: Path, directory: Path, tmp_path: Path, capsys: Capture) -> None:
    empty = {"directory": str(directory), "entries": "0", "bytes": "0", "most bytes": str(2 << 20)}
    assert shown(capsys, "--cache-info") == empty
    run(saved, "-o", tmp_path / "a")
    (entry,) = directory.iterdir()
    size = str(entry.stat().st_size)
    assert shown(capsys, "--cache-info") == empty | {"entries": "1", "bytes": size}
    removed = {"directory": str(directory), "removed entries": "1", "removed bytes": size}
    assert shown(capsys, "--clear-cache") == removed
    assert shown(capsys, "--cache-info") == empty


def test_a_cache_that_is_off(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("SPYRE_MLIR_CACHE", "off")
    for flag in ("--cache-info", "--clear-cache"):
        assert shown(capsys, flag) == {"directory": "off"}


def test_what_means_nothing_beside_it(refused: Refused, saved: Path) -> None:
    refused(compile_tool.run, ["--cache-info", saved], "--cache-info compiles nothing, so a model means nothing")
    refused(compile_tool.run, ["--clear-cache", "-o", "x"], "--clear-cache compiles nothing, so --output means")
    refused(compile_tool.run, ["-o", "x"], "the following arguments are required: MODEL.pt2")


def test_an_entry_that_cannot_be_removed(refused: Refused, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("spyre_mlir.cache.store.Store.clear", fail)
    refused(compile_tool.run, ["--clear-cache"], "the cache cannot be emptied: Permission denied", str(directory))


def test_the_second_time_no_pass_runs(saved: Path, tmp_path: Path, capsys: Capture) -> None:
    run(saved, "-o", tmp_path / "a", "-v")
    first = capsys.readouterr().err
    run(saved, "-o", tmp_path / "b", "-v")
    second = capsys.readouterr().err
    assert "info: decompose-aten:" in first and "info: cached: " in first
    assert "info: decompose-aten:" not in second and "info: lowered before: " in second
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_passes_run_for_dumps_and_without_the_cache(
    saved: Path, directory: Path, tmp_path: Path, capsys: Capture
) -> None:
    for words in (["-o", tmp_path / "a", "--dump-dir", tmp_path / "dumps"], ["-o", tmp_path / "b", "--no-cache"]):
        run(saved, *words, "-v")
        assert "info: decompose-aten:" in capsys.readouterr().err
    run(saved, "--emit", "spyre.loop")
    assert (tmp_path / "dumps" / "00-input.mlir").exists()
    assert not directory.exists()


def test_a_level_of_a_program_that_was_lowered_before(saved: Path, tmp_path: Path, capsys: Capture) -> None:
    run(saved, "--emit", "superdsc", "--no-cache")
    wanted = capsys.readouterr().out
    for _ in range(2):
        run(saved, "--emit", "superdsc")
        assert capsys.readouterr().out == wanted
