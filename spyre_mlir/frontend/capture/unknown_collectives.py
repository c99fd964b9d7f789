"""Operators of process groups that have no form: a host step would not wait for them, or read what is not there yet."""

from __future__ import annotations

from typing import cast

from torch.fx import Node

from spyre_mlir.frontend.arguments import exchanges, overload_name
from spyre_mlir.frontend.torch_private import Operator, OpOverload
from spyre_mlir.ops.collectives import NAMES, NAMESPACE, WAIT

_NAMESPACES = ("_c10d_functional", "_c10d_functional_autograd", "c10d", "_dtensor", "symm_mem")
_HINT = f"call one of torch.distributed._functional_collectives per tensor: {', '.join(NAMES)}"


def unknown_collective(node: Node) -> tuple[str, str] | None:
    """Return why a call that other ranks have part in cannot be imported, with a remedy; None if it can."""
    target: object = node.target
    if not isinstance(target, OpOverload) or target.namespace not in _NAMESPACES or exchanges(node):
        return None
    if overload_name(cast(Operator, target)) == f"{NAMESPACE}::{WAIT}":
        return None
    return "it is a collective without a form", _HINT


__all__ = ["unknown_collective"]
