"""Calls of a compiled program in the form of model calls: signatures, results, buffers written back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch.export import ExportedProgram
from xdsl.dialects.builtin import TensorType

from spyre_mlir.dialects.ir.functions import functions_by_name
from spyre_mlir.frontend.calling.tensor_states import write
from spyre_mlir.frontend.element_types import DTYPES
from spyre_mlir.frontend.program.complex_tensors import as_complex
from spyre_mlir.frontend.program.dataclass_trees import flat_dataclasses
from spyre_mlir.frontend.program.program import Program
from spyre_mlir.frontend.torch_private import tree_flatten

Array = NDArray[Any]


def is_complete(model: object) -> bool:
    """Return whether a model needs no example inputs because it is already exported."""
    return isinstance(model, (ExportedProgram, str, PathLike))


def signature_of(args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """Return a key that differs whenever a program made for one call does not fit another."""
    with flat_dataclasses(args, kwargs):
        leaves, tree = tree_flatten((tuple(args), dict(kwargs)))
    return f"{tree}: {', '.join(map(_form, leaves))}"


def _form(leaf: object) -> str:
    if not isinstance(leaf, torch.Tensor):
        return repr(leaf)
    return "nested" if leaf.is_nested else f"{leaf.dtype}{tuple(leaf.shape)}"  # a nested one has no shape to ask for


def finish_call(
    program: Program,
    results: Sequence[Array | None],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """Return the model's return value, in memory laid out like the model's results.

    Mutated inputs and buffers get their new values.

    Args:
        program: the program that ran.
        results: its results, wide; None for the new value of an argument that is not to be written.
        args: the call's positional inputs; mutated ones are written.
        kwargs: the call's keyword inputs; mutated ones are written.
    """
    given = dict(zip((a.name for a in program.inputs), program.flatten(args, kwargs), strict=True))
    outputs = [
        None if r is None else _as_tensor(np.asarray(r)).to(dtype)
        for r, dtype in zip(results, _result_dtypes(program), strict=True)
    ]
    for index, name in program.mutations.items():
        if (new := outputs[index]) is not None:
            write(given[name] if name in given else program.values[name], new)
    for number in program.complex_results:
        outputs[number] = as_complex(cast(torch.Tensor, outputs[number]))
    count = len(outputs) - len(program.mutations)
    memory, shared = program.memory({**program.values, **given})
    return program.unflatten([*memory.applied(outputs[:count], shared), *outputs[count:]])


def _as_tensor(array: Array) -> torch.Tensor:
    """The array as a tensor; the elements are not copied if nobody else has them."""
    return torch.as_tensor(array) if array.flags.owndata and array.flags.writeable else torch.tensor(array)


def _result_dtypes(program: Program) -> list[torch.dtype]:
    """dtypes of the function's results, the new values of mutated arguments included."""
    main = functions_by_name(program.module)["main"]
    return [DTYPES[t.get_element_type()] for t in main.function_type.outputs if isinstance(t, TensorType)]
