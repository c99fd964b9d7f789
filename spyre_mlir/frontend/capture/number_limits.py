"""Numbers beyond the element type that an operator converts them to: eager refuses them, tracing does not look."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from spyre_mlir.errors import ImportProgramError
from spyre_mlir.frontend.arguments import bind
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import OpOverload

_LIMITED = ("clamp", "clamp_min", "clamp_max", "hardtanh")
_FILLING = ("fill", "full_like", "new_full", "full")
# Operators that refuse a number beyond a type of floats however many elements there are; others have an infinity.
_STRICT = ("add", "sub", "rsub", "addmv", "addr", "index_fill", "scatter", "threshold")
_FILL, _LIMITS, _SCALES = ("value", "fill_value"), ("min", "max", "min_val", "max_val"), ("alpha", "beta")
# Arguments of operators of ATen that become numbers of the result's type. The `other` of arithmetic wraps, as in eager.
_CONVERTED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_LIMITED, _LIMITS),
    **dict.fromkeys((*_FILLING, "masked_fill", "index_fill", "scatter"), _FILL),
    **dict.fromkeys(("add", "sub", "rsub", "addmm", "addmv", "addbmm", "baddbmm", "addr"), _SCALES),
    **dict.fromkeys(("addcmul", "addcdiv"), _FILL),
    "threshold": ("threshold", "value"),
    "where": ("self", "other"),
}


def check_numbers(exported: ExportedProgram) -> None:
    """Check that numbers fit the types that operators convert them to, as eager does.

    Raises:
        ImportProgramError: one is beyond its type.
    """
    graphs = [module.graph for module in exported.graph_module.modules() if isinstance(module, GraphModule)]
    for node in (node for graph in graphs for node in graph.nodes if isinstance(node.target, OpOverload)):
        result: Any = node.meta.get("val")
        if node.target.namespace == "aten" and isinstance(result, torch.Tensor):
            _check(node, node.target.overloadpacket.__name__.rstrip("_"), result)


def _convert(operator: str, name: str, value: float, result: torch.Tensor) -> None:
    """Convert a number as an operator does for an argument; RuntimeError if it refuses the number.

    One element is filled with what more refuse, and limits of integers may have fractions.
    """
    one, two = torch.zeros(1, dtype=result.dtype), torch.zeros(2, dtype=result.dtype)
    count: int | torch.SymInt = result.numel()
    if operator in _FILLING:
        (one if not isinstance(count, torch.SymInt) and count == 1 else two).fill_(value)
    elif operator == "masked_fill":
        one.masked_fill_(one == 0, value)
    elif not result.is_floating_point():
        one.fill_(value)
    elif operator in _LIMITED:
        one.clamp_(max=value)
    elif operator in _STRICT and name != "threshold":
        two.fill_(value)


def _check(node: Node, operator: str, result: torch.Tensor) -> None:
    bound = bind(node) if operator in _CONVERTED else {}
    for name in _CONVERTED.get(operator, ()):
        value = bound[name].value if name in bound else None
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        try:
            _convert(operator, name, value, result)
        except RuntimeError as error:
            kind = str(result.dtype).removeprefix("torch.")
            raise ImportProgramError(
                f"{node.target}: {name} = {value} is no number of {kind}, and torch refuses it: {error}",
                where=place_of(node),
                hint=f"use a number of {kind}, or convert the tensor first",
            ) from error


__all__ = ["check_numbers"]
