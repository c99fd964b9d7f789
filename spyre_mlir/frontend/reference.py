"""What torch itself computes for a program: the reference that `.verify` compares with."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch.export import ExportedProgram

from spyre_mlir.frontend.export import clone_examples
from spyre_mlir.frontend.program import Program
from spyre_mlir.frontend.torch_private import tree_flatten


def torch_reference(program: Program, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None) -> list[NDArray[Any]]:
    """Runs the model eagerly, and gives the program's results in their order; the model is not changed.

    Raises:
        InputError: the arguments are not what the program was made for.
    """
    program.flatten(args, kwargs)
    fresh_args, fresh_kwargs = clone_examples(tuple(args), dict(kwargs or {}))
    model = _model(program)
    with torch.no_grad():
        output = model(*fresh_args, **fresh_kwargs)
    leaves, _ = tree_flatten(output)
    results: dict[int, torch.Tensor] = {i: leaf for i, leaf in zip(program.output_leaves, leaves, strict=True) if isinstance(i, int)}
    after = dict(model.named_buffers(remove_duplicate=False))
    inputs = dict(zip((a.name for a in program.inputs), program.flatten(fresh_args, fresh_kwargs), strict=True))
    for index, name in program.mutations.items():
        results[index] = inputs[name] if name in inputs else after[name]
    return [to_numpy(results[i]) for i in range(len(program.results))]


def _model(program: Program) -> torch.nn.Module:
    """The model to run; a copy if running it would change its buffers."""
    reference = program.reference
    model = cast(torch.nn.Module, reference.module() if isinstance(reference, ExportedProgram) else reference)
    return copy.deepcopy(model) if program.mutations else model


def to_numpy(tensor: torch.Tensor) -> NDArray[Any]:
    """A tensor as a numpy array of its own; bfloat16 and 8-bit floats, which numpy lacks, become float32."""
    tensor = tensor.detach().cpu()
    narrow = tensor.dtype is torch.bfloat16 or (tensor.dtype.is_floating_point and tensor.dtype.itemsize == 1)
    return np.array((tensor.float() if narrow else tensor).numpy())
