"""Third-party operations converted by a plugin at import: the call metadata, and the builder it uses."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, cast

import torch
from torch.fx import Node
from torch.fx.node import map_arg
from typing_extensions import override
from xdsl.dialects.builtin import IntAttr, TensorType
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.aten import AtenOp, CallOp, callee_of, make_op
from spyre_mlir.dialects.aten_arguments import OperandsAttr, to_attribute
from spyre_mlir.dialects.aten_build import AtenBuild, spelled
from spyre_mlir.dialects.aten_value import AtenValue, raw_of
from spyre_mlir.dialects.operator_calls import op_by_schema, results_of
from spyre_mlir.errors import RegistrationError, frames_of_ours
from spyre_mlir.frontend.arguments import bind, overload_name
from spyre_mlir.frontend.element_types import tensor_type
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.ops.call_info import NodeInfo, OpNode, TensorMeta, called_for
from spyre_mlir.ops.operator_names import canonical, exists
from spyre_mlir.ops.registry import meet, unknown_ops
from spyre_mlir.ops.table import OpEntry
from spyre_mlir.ops.value import Made, Value
from spyre_mlir.plugins import registry

# Under which the operands of an `OpNode` stand among the arguments of its op.
_INPUTS = "inputs"


class ImportBuild(AtenBuild):
    """Builder that emits ops as called; a later pass decomposes them."""

    def __init__(self, add: Callable[[AtenOp], AtenOp]) -> None:
        """Starts with what appends an op to the function."""
        self.append = add

    def make(self, overload: str, entry: OpEntry, bound: Mapping[str, Any], result: TensorType[Attribute]) -> SSAValue:
        """Add one op."""
        operands, attributes = spelled(entry, bound)
        return self.append(make_op(overload, operands, attributes, [result])).results[0]

    @override
    def called_by_schema(
        self, overload: str, positional: Sequence[object], named: Mapping[str, object]
    ) -> Value | tuple[Value, ...]:
        """Add a call of an operator that the op table lacks."""
        return results_of(self, self.append(op_by_schema(overload, positional, named)))

    def rewrite(self, entry: OpEntry, bound: Mapping[str, Any]) -> Made:
        """Expand ops with several results or without a shape of their own."""
        return super().rewrite(entry, bound) if entry.composed else None


def converted(node: Node, ssa: Callable[[Node], SSAValue], build: ImportBuild) -> list[SSAValue] | None:
    """Return the results of a call by the conversion that a plugin registered; None if there is none.

    Raises:
        RegistrationError: the conversion gives other results than the operation has.
    """
    for found in registry.find(registry.HookKind.CONVERSION, overload_name(cast(Any, node.target))):
        info = node_info(node, lambda n: AtenValue(build, ssa(n)))
        with called_for(f"{found.op} at {place_of(node)}"):
            made: object = found(info, build) if _takes_build(found.function) else found(info)
            return _op(found, made, node, ssa, build) if isinstance(made, OpNode) else _values(found, made, node)
    return None


def _takes_build(function: Callable[..., Any]) -> bool:
    """Return whether a conversion takes the `Build` behind the `NodeInfo`."""
    try:
        signature(function).bind(None, None)
    except (TypeError, ValueError):  # another number of arguments, or a function of C that does not say
        return False
    return True


def _values(found: registry.Registered, made: object, node: Node) -> list[SSAValue]:
    """Return the results that a conversion built.

    Raises:
        RegistrationError: they are not those of the operation.
    """
    results = [raw_of(r) for r in (cast("Sequence[object]", made) if isinstance(made, (list, tuple)) else [made])]
    types = [cast("SSAValue[Attribute]", r).type if isinstance(r, SSAValue) else type(r).__name__ for r in results]
    wanted = [tensor_type(v) for v in _tensors(node.meta["val"])]
    if not isinstance(made, (list, tuple)) or types != wanted:
        raise RegistrationError(
            f"{found.owner} converts {found.op} to {', '.join(map(str, types))}; "
            f"the operation has {', '.join(map(str, wanted))}",
            hint="give a list with one value per result, or an OpNode",
        )
    return cast("list[SSAValue]", results)


def _op(
    found: registry.Registered, made: OpNode, node: Node, ssa: Callable[[Node], SSAValue], build: ImportBuild
) -> list[SSAValue]:
    """Return the results of the op that a conversion described.

    Raises:
        RegistrationError: its tensors are not those of the call, or an attribute has no spelling.
    """
    inputs = {n.name: n for n in node.all_input_nodes}
    strange = [m.name for m in made.inputs if m.name not in inputs]
    wanted = [(m.shape, m.dtype) for m in _output_metas(node)]
    if strange or [(tuple(m.shape), m.dtype) for m in made.outputs] != wanted:
        raise RegistrationError(
            f"{found.owner} converts {found.op} to an OpNode with "
            + (f"the input {strange[0]}, which is none of {', '.join(inputs)}" if strange else "other outputs"),
            hint="take inputs from node_info.input_metas, outputs from node_info.output_metas",
        )
    name = canonical(made.op_type)
    meet(name)
    operands = [ssa(inputs[m.name]) for m in made.inputs]
    given = {_INPUTS: OperandsAttr(IntAttr(len(operands)))} if operands else {}
    try:
        attributes = given | {key: to_attribute(value) for key, value in made.attrs.items()}
    except TypeError as error:
        raise RegistrationError(
            f"{found.owner} converts {found.op} to an OpNode with an attribute that has no text: {error}",
            hint="numbers, text, truth values, None and lists of them have",
        ) from error
    types = [tensor_type(v) for v in _tensors(node.meta["val"])]
    return list(build.append(CallOp(callee_of(name) if exists(name) else name, operands, attributes, types)).results)


def node_info(node: Node, value: Callable[[Node], Value]) -> NodeInfo:
    """Return the call metadata for a conversion."""
    bound = bind(node)
    args, kwargs = map_arg((node.args, dict(node.kwargs)), lambda n: cast(Any, value(n)))
    return NodeInfo(
        name=node.name,
        op=node.op,
        target=node.target,
        args=tuple(args),
        kwargs=dict(kwargs),
        input_metas=[_meta(n.name, n.meta["val"]) for n in _read_nodes(node)],
        output_metas=_output_metas(node),
        attrs={name: b.value for name, b in bound.items() if not isinstance(b.value, Node)},
    )


def _read_nodes(node: Node) -> list[Node]:
    """Return the nodes that a node reads in the order of its arguments, one that it reads twice two times."""
    read: list[Node] = []
    map_arg((node.args, dict(node.kwargs)), lambda n: cast(Any, read.append(n)))
    return read


def _output_metas(node: Node) -> list[TensorMeta]:
    return [_meta(node.name, tensor) for tensor in _tensors(node.meta["val"])]


def _tensors(value: object) -> list[torch.Tensor]:
    several = cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else (value,)
    return [v for v in several if isinstance(v, torch.Tensor)]


def _meta(name: str, value: torch.Tensor) -> TensorMeta:
    return TensorMeta(name, tuple(int(e) for e in value.shape), str(value.dtype).removeprefix("torch."))


class UnknownOperationWarning(UserWarning):
    """Functions are registered for an operation that torch does not have and that the program does not have either."""


def warn_of_unknown_ops() -> None:
    """Name the operations with registered functions that nothing can call."""
    if unknown := unknown_ops():
        warnings.warn(
            f"nothing can call the functions registered for {', '.join(unknown)}: torch has no such operator, "
            "and no conversion makes such an op",
            UnknownOperationWarning,
            stacklevel=frames_of_ours(),
        )
