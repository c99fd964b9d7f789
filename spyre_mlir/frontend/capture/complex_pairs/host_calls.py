"""Calls of operators that have no rule on pairs: the host calls torch with complex numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.arguments import overload_name
from spyre_mlir.frontend.capture.complex_pairs.writer import ComplexPair, ComplexParts, PartWriter
from spyre_mlir.frontend.host_operators import HOST
from spyre_mlir.frontend.spelled_calls import ComplexAt, RealAt, spelled
from spyre_mlir.frontend.torch_private import Operator, schema_of, tree_flatten
from spyre_mlir.ops.native.collectives import is_collective


def by_host(w: PartWriter, node: Node, given: Mapping[str, Any]) -> list[ComplexParts | Node] | None:
    """Write a call that the host makes; return what stands for each result of the node.

    None if the host cannot: random numbers come in an order, ranks exchange tensors, sizes are symbols, or the call
    writes to an argument or gives something else than tensors.
    """
    results: Any = node.meta["val"]
    several: list[Any] = [results] if _is_tensor(results) else tree_flatten(results)[0]
    target = cast(Operator, node.target)
    if not all(map(_is_tensor, several)) or not _is_pure(target):
        return None
    tensors: list[Node] = []
    arguments = spelled({name: _argument(w, value, tensors) for name, value in given.items() if value is not None})
    if arguments is None:
        return None
    parts = iter(w.several(w(HOST.on_complex.default, tensors, str(target), arguments)))
    return [ComplexParts(next(parts), next(parts)) if value.is_complex() else next(parts) for value in several]


def _is_pure(target: Operator) -> bool:
    drawn = torch.Tag.nondeterministic_seeded in target.tags
    return not (drawn or is_collective(overload_name(target)) or schema_of(target).is_mutable)


def _is_tensor(value: object) -> bool:
    return isinstance(value, torch.Tensor)


def _argument(w: PartWriter, value: Any, tensors: list[Node]) -> Any:
    """An argument, whose tensors are added to the tensors of the call."""
    if isinstance(value, list):
        return [_argument(w, item, tensors) for item in cast("list[Any]", value)]
    if isinstance(value, ComplexPair):
        tensors.extend(cast("Sequence[Node]", w.parts(value)))
        return ComplexAt(len(tensors) - 2, len(tensors) - 1)
    if isinstance(value, Node) and _is_tensor(value.meta["val"]):
        tensors.append(value)
        return RealAt(len(tensors) - 1)
    return value


__all__ = ["by_host"]
