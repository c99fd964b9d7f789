"""Distributions that tests of other people's programs need: absent from a usual environment, and then said so."""

from __future__ import annotations

from importlib import metadata

import pytest


def needs(distribution: str, version: str, install: str) -> None:
    """Skips the test unless a distribution is installed, in a version that begins as given.

    Args:
        distribution: its name on the index.
        version: the first numbers of its version.
        install: what `pip install` takes.
    """
    try:
        found = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{distribution} {version} is not installed; try: pip install {install}")
    if not f"{found}.".startswith(f"{version}."):
        pytest.skip(f"{distribution} {version} is needed, and {found} is installed")
