"""Models, example arguments and symbols that a trace takes: what torch would refuse without a place, or pass over."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import torch

from spyre_mlir.errors import ImportProgramError, InputError, UnsupportedError
from spyre_mlir.frontend.capture.unsupported import DENSE, PADDED
from spyre_mlir.frontend.torch_private import tree_flatten_with_path

_NAMED = (
    "dynamic_shapes={'x': {0: torch.export.Dim.AUTO}, 'y': None} names each argument, or give a tuple in their order"
)


def check_model(model: torch.nn.Module) -> None:
    """Refuse modules of TorchScript, and those whose weights are divided among ranks.

    Raises:
        ImportProgramError: a module is of TorchScript.
        UnsupportedError: a weight is a `DTensor`.
    """
    for name, module in cast("Iterator[tuple[str, torch.nn.Module]]", model.named_modules()):
        if isinstance(module, torch.jit.ScriptModule):
            owner = "the model" if not name else f"its part {name}"
            raise ImportProgramError(
                f"{owner} is compiled by TorchScript, which torch.export does not trace",
                where=str(getattr(module, "original_name", None) or type(module).__name__),
                hint="compile the model with the modules that torch.jit.script or torch.jit.trace were given",
            )
    distributed: Any = sys.modules.get("torch.distributed.tensor")  # no weight is one if nobody has imported it
    if distributed is None:
        return
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if isinstance(tensor, distributed.DTensor):
            raise UnsupportedError(
                f"the weight {name} of {type(model).__name__} is a DTensor, of which each rank has a part; expected "
                "whole tensors",
                hint="compile the module before fully_shard or parallelize_module divide its weights; "
                'torch.compile(model, backend="spyre") takes modules of parallelize_module',
            )


def check_dense(**examples: object) -> None:
    """Refuse sparse and nested tensors, of most of which torch.export says that they are no tensors of its own.

    Raises:
        UnsupportedError: there is one.
    """
    for name, given in examples.items():
        for path, leaf in tree_flatten_with_path(given)[0]:
            if isinstance(leaf, torch.Tensor) and (leaf.is_nested or leaf.layout is not torch.strided):
                place = name + "".join(map(str, path))
                layout = f"an input has the layout {leaf.layout}, which has no form"
                message, hint = ("an input is a nested tensor", PADDED) if leaf.is_nested else (layout, DENSE)
                raise UnsupportedError(message, where=place, hint=hint)


def check_shapes(model: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], shapes: Any) -> None:
    """Check that symbols are said of arguments that are there, and of dimensions that these have.

    Args:
        model: the module.
        args: its positional example arguments.
        kwargs: its keyword example arguments.
        shapes: which sizes are symbols, as `torch.export.export` takes it; other kinds than `dict` and `tuple` are
            left to torch.

    Raises:
        InputError: they are not.
    """
    if not isinstance(shapes, (dict, list, tuple)):
        if shapes is None or hasattr(shapes, "dynamic_shapes"):  # ShapesCollection, AdditionalInputs
            return
        raise InputError(f"dynamic_shapes is {shapes!r}, expected a dict or a tuple", hint=_NAMED)
    if not shapes:  # torch takes it for None
        return
    try:
        bound = inspect.signature(model.forward).bind(*args, **kwargs)
    except (TypeError, ValueError):  # the call itself says so
        return
    kinds = bound.signature.parameters
    if any(kinds[name].kind is inspect.Parameter.VAR_KEYWORD for name in bound.arguments):
        return
    names = list(bound.arguments)
    if isinstance(shapes, dict):
        said = cast("dict[object, Any]", shapes)
        if set(said) != set(names):
            raise InputError(
                f"dynamic_shapes names {', '.join(map(repr, said)) or 'nothing'}, expected each argument of the call: "
                f"{', '.join(map(repr, names))}",
                where=f"{type(model).__name__}.forward",
                hint="write None for an argument whose sizes are all known, or give a tuple in their order",
            )
        pairs = [(name, said[name]) for name in names]
    else:
        listed = cast("Sequence[Any]", shapes)
        if len(listed) != len(names):
            raise InputError(
                f"dynamic_shapes is for {len(listed)} arguments, expected {len(names)}: {', '.join(map(repr, names))}",
                where=f"{type(model).__name__}.forward",
                hint="write None for an argument whose sizes are all known",
            )
        pairs = list(zip(names, listed, strict=True))
    for name, of_one in pairs:
        _check_dims(name, bound.arguments[name], of_one)


def _check_dims(name: str, given: object, shapes: object) -> None:
    """Raises InputError if symbols are said of dimensions that an argument, or a tensor in it, does not have."""
    if isinstance(given, torch.Tensor):
        if isinstance(shapes, dict):
            said = cast("dict[object, object]", shapes)
            wrong = [dim for dim in said if not isinstance(dim, int) or not 0 <= dim < given.dim()]
            if wrong:
                raise InputError(
                    f"dynamic_shapes names dimension {wrong[0]!r} of '{name}', expected one of its {given.dim()}, "
                    "which are counted from 0",
                    hint=f"the example has the shape {tuple(given.shape)}",
                )
        return
    if isinstance(given, (list, tuple)) and isinstance(shapes, (list, tuple)):
        parts = zip(cast("Sequence[object]", given), cast("Sequence[object]", shapes), strict=False)
        for number, (part, of_part) in enumerate(parts):
            _check_dims(f"{name}[{number}]", part, of_part)
    elif isinstance(given, dict) and isinstance(shapes, dict):
        of_parts = cast("dict[object, object]", shapes)
        for key, part in cast("dict[object, object]", given).items():
            _check_dims(f"{name}[{key!r}]", part, of_parts.get(key))


__all__ = ["check_dense", "check_model", "check_shapes"]
