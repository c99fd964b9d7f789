"""The version of the tools, installed or not."""

from __future__ import annotations

from importlib import metadata
from importlib.metadata import PackageNotFoundError

import pytest

import spyre_mlir
from spyre_mlir.cli.support import versions


def test_installed_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert versions.installed_version() == spyre_mlir.__version__

    def missing(_: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(metadata, "version", missing)
    assert versions.installed_version() == "(not installed)"
