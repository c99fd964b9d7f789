"""Sources of weights: checkpoints on disk, state dicts, modules, exported programs."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import cast

import torch
from torch.export import ExportedProgram

from spyre_mlir.errors import BindingError
from spyre_mlir.frontend.torch_private import is_real
from spyre_mlir.frontend.weights.files import read_checkpoint


def is_on_disk(source: object) -> bool:
    """Return whether a source is a path."""
    return isinstance(source, (str, PathLike))


def tensors_of(source: object) -> dict[str, torch.Tensor]:
    """Return the tensors of a source by name; those without elements are left out.

    Raises:
        BindingError: it is nothing that has weights, or a checkpoint that cannot be read.
    """
    found = _named(source)
    return {name: tensor.detach() for name, tensor in found.items() if is_real(tensor)}


def _named(source: object) -> Mapping[str, torch.Tensor]:
    if isinstance(source, (str, PathLike)):
        return read_checkpoint(Path(cast("str | PathLike[str]", source)))
    if isinstance(source, torch.nn.Module):
        # Of a tensor that a model has in several places, every name.
        parameters, buffers = (
            source.named_parameters(remove_duplicate=False),
            source.named_buffers(remove_duplicate=False),
        )
        return {**dict(parameters), **dict(buffers)}
    if isinstance(source, ExportedProgram):
        constants = source.constants.items()
        return {**source.state_dict, **{n: v for n, v in constants if isinstance(v, torch.Tensor)}}
    if isinstance(source, Mapping):
        tensors = cast("Mapping[object, object]", source)
        for name, value in tensors.items():
            if not isinstance(name, str) or not isinstance(value, torch.Tensor):
                raise BindingError(
                    f"a state dict has tensors by name, got {name!r}: {type(value).__name__}",
                    hint="bind model.state_dict()",
                )
        return cast("Mapping[str, torch.Tensor]", source)
    raise BindingError(
        f"weights come from a path, a state dict, a module or an exported program, got {type(source).__name__}",
        hint="bind the directory of the checkpoint, or model.state_dict()",
    )
