"""Programs in which data decides sizes, as files: what torch exported, from which they are divided again."""

from __future__ import annotations

from pathlib import Path

import torch
from torch.export import ExportedProgram

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.capture.export import REFUSED, first_line, load_pt2
from spyre_mlir.frontend.capture.torch_warnings import torch_noise_hidden
from spyre_mlir.frontend.torch_private import is_fake
from spyre_mlir.plugins import registry


def write_exported(exported: ExportedProgram, path: Path) -> None:
    """Write an exported program, with its tensors as they are now.

    Raises:
        InputError: tensors have no values, or torch cannot write the program.
    """
    held = {**exported.state_dict, **exported.constants}
    empty = [n for n, t in held.items() if isinstance(t, torch.Tensor) and (is_fake(t) or t.device.type == "meta")]
    if empty:
        raise InputError(
            f"the model has no values for {', '.join(empty[:3])}{' …' if len(empty) > 3 else ''}",
            hint="compile the model with its weights",
        )
    with torch_noise_hidden():
        try:
            torch.export.save(exported, str(path))
        except REFUSED as error:
            hint = "see if torch.export.save(torch.export.export(model, args), path) works"
            raise InputError(f"torch cannot write the program: {first_line(error)}", hint=hint) from error


def read_exported(path: Path) -> ExportedProgram:
    """Read what `write_exported` wrote; plugins are loaded first, as they may have registered its operators.

    Raises:
        ImportProgramError: there is no such file, or it is something else.
    """
    registry.load_plugins()
    return load_pt2(path)
