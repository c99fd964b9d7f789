"""Processes of a card's software: what goes wrong in them is said."""

import stat
from pathlib import Path

from spyre_mlir.runtime.finding import CardSoftware
from spyre_mlir.runtime.launching import compile_step, run_steps


def compiler(path: Path, text: str) -> CardSoftware:
    """A card whose compiler is a shell script."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return CardSoftware((str(path), "-d"), "/no/python", seconds=2.0)


def test_a_compiler_that_refuses_shows_its_last_lines(tmp_path: Path) -> None:
    card = compiler(tmp_path / "c", "for i in 1 2 3 4 5 6 7 8; do echo line $i >&2; done; exit 3")
    problem = compile_step(tmp_path, card)
    assert "ended with code 3" in problem
    assert "line 8" in problem
    assert "line 2" not in problem


def test_a_compiler_that_ends_well_without_a_program(tmp_path: Path) -> None:
    assert "ended without spyreCodeDir/spyrecode.json" in compile_step(tmp_path, compiler(tmp_path / "c", "exit 0"))


def test_a_compiler_that_aborts(tmp_path: Path) -> None:
    assert "was ended by signal 6" in compile_step(tmp_path, compiler(tmp_path / "c", "kill -ABRT $$"))


def test_a_compiler_that_hangs(tmp_path: Path) -> None:
    card = compiler(tmp_path / "c", "exec sleep 60")
    assert "took longer than 2 s" in compile_step(tmp_path, card)


def test_a_compiler_that_does_not_start(tmp_path: Path) -> None:
    assert "does not start: No such file" in compile_step(tmp_path, CardSoftware(("/no/compiler", "-d"), None))


def test_an_interpreter_that_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "argument_0.npy").write_bytes(b"")
    failed = run_steps([tmp_path], CardSoftware(("c",), "/no/python"), tmp_path)
    assert "does not start: No such file" in failed[tmp_path]
