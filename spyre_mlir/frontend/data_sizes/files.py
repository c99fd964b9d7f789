"""Programs as torch exported them, as files: those in which data decides sizes, and those with symbols."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.capture.archive import load_pt2
from spyre_mlir.frontend.capture.control_flow.carried_numbers import with_numbers_as_tensors
from spyre_mlir.frontend.capture.torch_warnings import torch_noise_hidden
from spyre_mlir.frontend.capture.tracing.torch_errors import REFUSED, first_line
from spyre_mlir.frontend.program.program import Program
from spyre_mlir.frontend.symbolic.derived import derived_refusal
from spyre_mlir.frontend.torch_private import is_real
from spyre_mlir.frontend.weights.bound_model import bound_model
from spyre_mlir.frontend.weights.sources import tensors_of
from spyre_mlir.plugins import registry


def write_exported(exported: ExportedProgram, path: Path) -> None:
    """Write an exported program, with its tensors as they are now, and numbers that loops carry as tensors.

    Raises:
        InputError: tensors have no values, a size is an expression, a result is a text, or torch cannot write the
            program.
    """
    if empty := _without_values(exported):
        raise InputError(
            f"the model has no values for {', '.join(empty[:3])}{' …' if len(empty) > 3 else ''}",
            hint="compile the model with its weights, or bind them first",
        )
    if (refused := derived_refusal(exported)) is not None:
        raise refused
    if (text := _text_among_results(exported)) is not None:
        raise InputError(
            f"a result is the text {text!r}, and torch cannot read such a program from a file",
            hint="return the text from a function that calls the model, or keep it in your own code",
        )
    with torch_noise_hidden():
        try:
            torch.export.save(with_numbers_as_tensors(exported), str(path))
        except REFUSED as error:
            hint = "see if torch.export.save(torch.export.export(model, args), path) works"
            raise InputError(f"torch cannot write the program: {first_line(error)}", hint=hint) from error


def exported_now(program: Program) -> ExportedProgram:
    """Return a program with symbols as torch exported it, with the tensors that it has now; none is copied."""
    if program.origin is None:
        raise ValueError(f"{program.name} has no symbols")
    source = program.origin.source
    empty = _without_values(source)  # of these, the program may read none
    elsewhere = {name: tensor for name, tensor in tensors_of(program.reference).items() if name in empty}
    known = {**elsewhere, **program.read_ahead, **program.values}
    return cast(ExportedProgram, bound_model(source, known, program.ties))


def _text_among_results(exported: ExportedProgram) -> str | None:
    """The first result that is a text; None if there is none."""
    arguments = [spec.arg for spec in exported.graph_signature.output_specs]
    given = [argument.value for argument in arguments if isinstance(argument, ConstantArgument)]
    return next((value for value in given if isinstance(value, str)), None)


def _without_values(exported: ExportedProgram) -> list[str]:
    held = {**exported.state_dict, **exported.constants}
    return [name for name, value in held.items() if isinstance(value, torch.Tensor) and not is_real(value)]


def read_exported(path: Path) -> ExportedProgram:
    """Read what `write_exported` wrote; plugins are loaded first, as they may have registered its operators.

    Raises:
        ImportProgramError: there is no such file, or it is something else.
    """
    registry.load_plugins()
    return load_pt2(path)
