"""Reference page: differences between the SuperDSC files written here and those of torch-spyre's generator."""

from __future__ import annotations

import tomllib
from pathlib import Path

from dialect_pages import EDIT, table

SOURCE = Path(__file__).parent / "data" / "generator_differences.toml"
INTRO = """torch-spyre's generator of 24 June 2026 was given 162 kernels of 66 programs as compiled here. 120 files
were equal in every field and in the order of their keys. Two kinds of differences have been removed since:
the order of dims of operands that are one number (10 files) and the place of a dim of exactly one stick (17
files). The rows below remain, and all of them are deliberate. Each has a test of its name in
`tests/end_to_end/superdsc/test_generator_differences.py`."""


def differences_page() -> str:
    """Table of the remaining differences, with the reason for each."""
    rows = tomllib.loads(SOURCE.read_text(encoding="utf-8"))["difference"]
    cells = [tuple(row[key] for key in ("name", "subject", "ours", "theirs", "reason", "source")) for row in rows]
    parts = [
        "# Differences from torch-spyre's files",
        EDIT.format(source="tools/data/generator_differences.toml"),
        INTRO,
        table(("name", "subject", "here", "torch-spyre", "reason", "source"), cells),
    ]
    return "\n\n".join(parts) + "\n"
