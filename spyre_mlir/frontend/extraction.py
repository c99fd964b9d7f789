"""The exported graph and the program of a model, under the names that PyTorch-IR has for the two steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram

from spyre_mlir.frontend.capture.export import export_model as _export
from spyre_mlir.frontend.importer import import_program
from spyre_mlir.frontend.program.program import Program


def export_model(
    model: torch.nn.Module,
    example_inputs: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    strict: bool = False,
) -> ExportedProgram:
    """Export a module as an import does first; `graph_module` has the FX graph.

    Args:
        model: the module; its tensors may be on the meta device.
        example_inputs: positional example arguments.
        kwargs: keyword example arguments.
        strict: whether Dynamo traces the module, as `torch.export.export` takes it.

    Raises:
        UnsupportedError: the control flow depends on data.
        ImportProgramError: torch cannot trace the module for these arguments.
    """
    return _export(model, tuple(example_inputs), dict(kwargs or {}), strict=strict)


def extract_ir(
    model: torch.nn.Module,
    example_inputs: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    strict: bool = False,
) -> Program:
    """Export and import a module: the program has the module at the aten level, and its text as `str(program.module)`.

    Args:
        model: the module; its tensors may be on the meta device.
        example_inputs: positional example arguments.
        kwargs: keyword example arguments.
        strict: whether Dynamo traces the module, as `torch.export.export` takes it.

    Raises:
        UnsupportedError: parts of the model have no form; all of them are named.
        ImportProgramError: torch cannot trace the module for these arguments.
    """
    return import_program(export_model(model, example_inputs, kwargs, strict=strict))
