"""Which operators the host runs in a bundle directory, read from the text of its host program and nothing else."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PROGRAM = "program.mlir"
STEP = re.compile(r'\bspyre\.kernel\.host "(?P<callee>[^"]+)"(?: because "(?P<reason>(?:[^"\\]|\\.)*)")?')
MOVES = re.compile(r"\bspyre\.kernel\.(to_device|from_device)\b")


@dataclass(frozen=True)
class Step:
    """An operator that the host runs; without a reason it only follows others that do."""

    callee: str
    reason: str


def host_steps(directory: Path) -> tuple[Step, ...]:
    """The operators in the order in which they run."""
    text = (directory / PROGRAM).read_text(encoding="utf-8")
    return tuple(Step(found["callee"], found["reason"] or "") for found in STEP.finditer(text))


def transfers(directory: Path) -> int:
    """How often a tensor is sent to the device or brought back."""
    return len(MOVES.findall((directory / PROGRAM).read_text(encoding="utf-8")))
