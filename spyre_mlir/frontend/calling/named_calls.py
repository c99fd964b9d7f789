"""Calls of a program by name, with arrays: inputs as the caller names them, results by their path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.fx import Node
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.frontend.element_types import ELEMENT_TYPES, describe
from spyre_mlir.frontend.lowering.signature import output_names
from spyre_mlir.frontend.program.dataclass_trees import flat_dataclasses
from spyre_mlir.frontend.reference.eager import to_numpy
from spyre_mlir.frontend.symbolic.sizes import Sizes
from spyre_mlir.frontend.torch_private import TreeSpec, tree_flatten

Array = NDArray[Any]


def types_by_name(inputs: Sequence[Node], sizes: Sizes) -> list[tuple[str, Attribute]]:
    """Return names and types of the inputs that arrays stand for, in order; symbols are extents of any number.

    A whole number that calls give is a tensor of one integer. Values that the program was made for are no inputs.

    Args:
        inputs: placeholders of the inputs.
        sizes: symbols of the program.

    Raises:
        UnsupportedError: an input has numbers that arrays of other programs cannot have, as complex ones.
    """
    return [(node.name, _type(node, sizes)) for node in inputs if _is_given(node)]


def _is_given(node: Node) -> bool:
    return isinstance(node.meta.get("val"), (torch.Tensor, torch.SymInt))


def _type(node: Node, sizes: Sizes) -> TensorType[Attribute]:
    value = node.meta["val"]
    if not isinstance(value, torch.Tensor):
        return TensorType(ELEMENT_TYPES[torch.int64], [])
    if value.dtype not in ELEMENT_TYPES:
        raise UnsupportedError(
            f"the input '{node.name}' is {describe(sizes.extents(value), value.dtype)}, which no array of a "
            "file stands for",
            hint="spyre_mlir.load(directory) takes tensors",
        )
    return sizes.type_of(value)


def call_of_arrays(
    inputs: Sequence[Node], tree: TreeSpec, arrays: Sequence[Array]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and keyword inputs of a call.

    Args:
        inputs: placeholders of the inputs.
        tree: their nesting.
        arrays: in the order of `types_by_name`.

    Raises:
        InputError: an array has numbers of another kind than the input, or too large ones.
    """
    given = iter(arrays)
    leaves = [_leaf(node, next(given)) if _is_given(node) else node.meta.get("val") for node in inputs]
    with flat_dataclasses(tree):
        args, kwargs = tree.unflatten(leaves)
    return tuple(args), dict(kwargs)


def _leaf(node: Node, array: Array) -> Any:
    value = node.meta["val"]
    whole = not isinstance(value, torch.Tensor) or not value.dtype.is_floating_point
    if array.dtype.kind not in ("biu" if whole else "biuf"):
        expected = "whole numbers" if whole else "real numbers"
        raise InputError(
            f"the input '{node.name}' holds {array.dtype}, expected {expected}", hint="convert it before numpy.save"
        )
    if not isinstance(value, torch.Tensor):
        if array.size != 1:
            raise InputError(f"the input '{node.name}' is {array.size} numbers, expected a whole number")
        return int(array.item())
    if whole and value.dtype is not torch.bool and array.size:
        ends = torch.iinfo(value.dtype)
        if int(array.min()) < ends.min or int(array.max()) > ends.max:
            raise InputError(f"the input '{node.name}' holds numbers beyond {ends.min:,} to {ends.max:,}")
    plain = array.astype(np.float64 if array.dtype.kind == "f" else array.dtype.newbyteorder("="))
    return torch.from_numpy(plain).to(value.dtype)  # pyright: ignore[reportUnknownMemberType] # untyped in torch


def arrays_by_name(tree: TreeSpec, results: Any) -> Mapping[str, Array]:
    """Return tensors and numbers among the results of a call, which are nested as a tree says, by their path."""
    with flat_dataclasses(tree, results):
        leaves = tree_flatten(results)[0]
        names = output_names(tree, len(leaves))
    numbers = (torch.Tensor, bool, int, float)
    return {n: to_numpy(torch.as_tensor(x)) for n, x in zip(names, leaves, strict=True) if isinstance(x, numbers)}


__all__ = ["arrays_by_name", "call_of_arrays", "types_by_name"]
