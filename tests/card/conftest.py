"""The stand-in of a card on the paths, and a bundle to hand over."""

import os
import shlex
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def card_python(python: list[str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """An interpreter that has loaded torch already: each process that has the card would load it anew."""
    path = tmp_path_factory.mktemp("card") / "python"
    path.write_text(f'#!/bin/sh\nexec {shlex.join(python)} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the stand-ins where their namesakes are looked for; processes inherit it."""
    python = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join([str(HERE), python, os.environ.get("PATH", "")]))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE / "site"), str(HERE.parents[1])]))
