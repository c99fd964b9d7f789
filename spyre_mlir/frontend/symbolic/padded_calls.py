"""Calls of a program for a larger size: inputs with zeros behind them, and the first elements of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from spyre_mlir.dialects.aten_sizes import extents_at, number_at
from spyre_mlir.dialects.ir.functions import first_function
from spyre_mlir.frontend.program.dataclass_trees import flat_dataclasses
from spyre_mlir.frontend.program.program import Argument, Program, TreeConstant
from spyre_mlir.frontend.symbolic.call_sizes import argument_types
from spyre_mlir.frontend.torch_private import tree_flatten


def padded_inputs(
    program: Program, args: Sequence[Any], kwargs: Mapping[str, Any], sizes: Mapping[str, int]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the inputs of a call with zeros behind them.

    Args:
        program: with symbols.
        args: positional inputs.
        kwargs: keyword inputs.
        sizes: values of the symbols, none of them less than that in the call.
    """
    types = argument_types(program)
    leaves = program.leaves(tuple(args), dict(kwargs))
    pairs = zip(program.input_leaves, leaves, strict=True)
    padded = [
        _padded(leaf, extents_at(types[wanted.name], sizes)[: -1 if wanted.is_complex else None])
        if isinstance(wanted, Argument)
        else number_at(wanted.value, sizes)
        for wanted, leaf in pairs
    ]
    with flat_dataclasses(args, kwargs):
        new_args, new_kwargs = program.input_tree.unflatten(padded)
    return tuple(new_args), dict(new_kwargs)


def first_elements(program: Program, outputs: Any, sizes: Mapping[str, int]) -> Any:
    """Return the outputs of a call without the elements of padding.

    Args:
        program: with symbols.
        outputs: of a call for larger sizes.
        sizes: values of the symbols in the caller's call.
    """
    main = first_function(program.module)
    types = cast("Sequence[TensorType[Attribute]]", main.function_type.outputs.data)
    with flat_dataclasses(program.output_tree):
        leaves, _ = tree_flatten(outputs)
        cut = [
            number_at(wanted.value, sizes)
            if isinstance(wanted, TreeConstant)
            else _cut(leaf, extents_at(types[wanted], sizes)[: leaf.dim()])
            for wanted, leaf in zip(program.output_leaves, leaves, strict=True)
        ]
        return program.output_tree.unflatten(cut)


def has_gaps(outputs: Any) -> bool:
    """Return whether an output has an element that is no number."""
    leaves, _ = tree_flatten(outputs)
    return any(isinstance(leaf, torch.Tensor) and bool(leaf.isnan().any()) for leaf in leaves)


def _padded(leaf: Any, extents: Sequence[int]) -> torch.Tensor:
    if tuple(leaf.shape) == tuple(extents):
        return leaf
    made = leaf.new_zeros(extents)
    made[tuple(slice(extent) for extent in leaf.shape)] = leaf
    return made


def _cut(leaf: torch.Tensor, extents: Sequence[int]) -> torch.Tensor:
    return leaf if tuple(leaf.shape) == tuple(extents) else leaf[tuple(map(slice, extents))].clone()
