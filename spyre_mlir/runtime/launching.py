"""Compilation and execution of steps by the software of a card, in processes of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from spyre_mlir.runtime.finding import CardSoftware, shown

SCRIPT = Path(__file__).with_name("launch_script.py")
# A compiler may end with 0 and without a program: torch-spyre takes this file as the sign of success; certain.
PROGRAM = Path("spyreCodeDir") / "spyrecode.json"
_LINES = 6


def compile_step(directory: Path, card: CardSoftware) -> str:
    """Compile the bundle in a directory; return what went wrong, or nothing."""
    command = [*card.compiler, str(directory)]
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=card.seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return f"'{shown(command)}' took longer than {card.seconds:g} s"
    except OSError as error:
        return f"'{shown(command)}' does not start: {error.strerror}"
    if ended.returncode:
        return f"'{shown(command)}' {_ending(ended.returncode)}{_tail(ended.stderr or ended.stdout)}"
    if not (directory / PROGRAM).is_file():
        return f"'{shown(command)}' ended without {PROGRAM}{_tail(ended.stderr or ended.stdout)}"
    return ""


def run_steps(directories: Sequence[Path], card: CardSoftware, folder: Path) -> dict[Path, str]:
    """Run compiled steps in order; return what went wrong, by directory.

    Args:
        directories: of the steps.
        card: has an interpreter.
        folder: for the list of steps.
    """
    failed: dict[Path, str] = {}
    waiting = list(directories)
    while waiting:
        problem = _run(waiting, card, folder)
        reached = next((n for n, directory in enumerate(waiting) if not _is_done(directory)), None)
        if reached is None:
            break
        failed[waiting[reached]] = problem
        waiting = waiting[reached + 1 :]
    return failed


def _is_done(directory: Path) -> bool:
    return all(p.with_name(p.name.replace("argument", "result")).exists() for p in directory.glob("argument_*.npy"))


def _run(directories: Sequence[Path], card: CardSoftware, folder: Path) -> str:
    """Run the script; return why it ended before the last step."""
    listed = folder / "steps.txt"
    listed.write_text("".join(f"{directory}\n" for directory in directories), encoding="utf-8")
    command = [card.python or "", "-P", str(SCRIPT), str(listed)]
    seconds = card.seconds * len(directories)
    try:
        ended = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return f"{len(directories)} steps took longer than {seconds:g} s"
    except OSError as error:
        return f"'{shown(command)}' does not start: {error.strerror}"
    for directory in directories:
        if (directory / "error.txt").is_file():
            return (directory / "error.txt").read_text(encoding="utf-8").strip()
    return f"the process that has the card {_ending(ended.returncode)}{_tail(ended.stderr)}"


def _ending(code: int) -> str:
    return f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"


def _tail(text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines() if line.strip()][-_LINES:]
    return "".join(f"\n      {line}" for line in lines)


__all__ = ["PROGRAM", "compile_step", "run_steps"]
