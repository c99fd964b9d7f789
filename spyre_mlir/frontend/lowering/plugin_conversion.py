"""Third-party operations converted by a plugin at import: the call metadata, and the builder it uses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch
from torch.fx import Node
from torch.fx.node import map_arg
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.aten import AtenOp, make_op
from spyre_mlir.dialects.aten_build import AtenBuild, spelled
from spyre_mlir.dialects.aten_value import AtenValue, raw_of
from spyre_mlir.errors import RegistrationError
from spyre_mlir.frontend.arguments import bind, overload_name
from spyre_mlir.frontend.element_types import tensor_type
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.ops.table import OpEntry
from spyre_mlir.ops.value import Made, Value
from spyre_mlir.plugins import registry


class ImportBuild(AtenBuild):
    """Builder that emits ops as called; a later pass decomposes them."""

    def __init__(self, add: Callable[[AtenOp], AtenOp]) -> None:
        """Starts with what appends an op to the function."""
        self._add = add

    def make(self, overload: str, entry: OpEntry, bound: Mapping[str, Any], result: TensorType[Attribute]) -> SSAValue:
        """Add one op."""
        operands, attributes = spelled(entry, bound)
        return self._add(make_op(overload, operands, attributes, [result])).results[0]

    def rewrite(self, entry: OpEntry, bound: Mapping[str, Any]) -> Made:
        """Expand ops with several results or without a shape of their own."""
        return super().rewrite(entry, bound) if entry.composed else None


def converted(node: Node, ssa: Callable[[Node], SSAValue], build: ImportBuild) -> list[SSAValue] | None:
    """Return the results of a call by the conversion that a plugin registered; None if there is none.

    Raises:
        RegistrationError: the conversion gives other results than the operation has.
    """
    for found in registry.find(registry.HookKind.CONVERSION, overload_name(cast(Any, node.target))):
        made: object = found(node_info(node, lambda n: AtenValue(build, ssa(n))), build)
        results = [raw_of(r) for r in (cast("Sequence[object]", made) if isinstance(made, (list, tuple)) else [made])]
        wanted = [tensor_type(v) for v in _tensors(node.meta["val"])]
        types = [cast("SSAValue[Attribute]", r).type if isinstance(r, SSAValue) else type(r).__name__ for r in results]
        if not isinstance(made, (list, tuple)) or types != wanted:
            raise RegistrationError(
                f"{found.owner} converts {found.op} to {', '.join(map(str, types))}; "
                f"the operation has {', '.join(map(str, wanted))}",
                where=place_of(node),
                hint="give a list with one value per result",
            )
        return cast("list[SSAValue]", results)
    return None


def node_info(node: Node, value: Callable[[Node], Value]) -> registry.NodeInfo:
    """Return the call metadata for a conversion."""
    bound = bind(node)
    args, kwargs = map_arg((node.args, dict(node.kwargs)), lambda n: cast(Any, value(n)))
    return registry.NodeInfo(
        name=node.name,
        target=overload_name(cast(Any, node.target)),
        args=tuple(args),
        kwargs=dict(kwargs),
        inputs=tuple(_meta(n.name, n.meta["val"]) for n in node.all_input_nodes),
        outputs=tuple(_meta(node.name, v) for v in _tensors(node.meta["val"])),
        attributes={name: b.value for name, b in bound.items() if not isinstance(b.value, Node)},
    )


def _tensors(value: object) -> list[torch.Tensor]:
    several = cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else (value,)
    return [v for v in several if isinstance(v, torch.Tensor)]


def _meta(name: str, value: torch.Tensor) -> registry.TensorMeta:
    return registry.TensorMeta(name, tuple(int(e) for e in value.shape), str(value.dtype).removeprefix("torch."))
