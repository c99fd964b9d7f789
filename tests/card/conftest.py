"""The stand-in of a card on the paths, and a bundle to hand over."""

import os
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the stand-ins where their namesakes are looked for; processes inherit it."""
    python = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", os.pathsep.join([str(HERE), python, os.environ.get("PATH", "")]))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE / "site"), str(HERE.parents[1])]))
