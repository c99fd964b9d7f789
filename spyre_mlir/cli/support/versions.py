"""The version of the tools."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def installed_version() -> str:
    """Return the version of the installed package; a word where a mere checkout runs."""
    try:
        return version("spyre-mlir")
    except PackageNotFoundError:
        return "(not installed)"
