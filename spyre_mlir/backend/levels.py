"""The levels of a program as text, in a folder of its bundle: the reference for bisecting the bundle."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.backend.stored import read_module
from spyre_mlir.backend.whole_files.contained import contained
from spyre_mlir.text.render import module_text

LEVELS_FOLDER = "levels"


def write_levels(directory: Path, modules: Mapping[str, ModuleOp]) -> None:
    """Write ``levels/LEVEL.mlir`` with the locations in the model."""
    folder = directory / LEVELS_FOLDER
    folder.mkdir()
    for level, module in modules.items():
        (folder / f"{level}.mlir").write_text(module_text(module, locations=True) + "\n", encoding="utf-8")


def read_levels(directory: Path, context: Context) -> dict[str, ModuleOp]:
    """Read the levels that a bundle directory holds as text; none if it was written without.

    Raises:
        ReadError: a file is no MLIR, or does not verify.
    """
    files = sorted((directory / LEVELS_FOLDER).glob("*.mlir"))
    return {path.stem: read_module(contained(directory, f"{LEVELS_FOLDER}/{path.name}"), context) for path in files}
