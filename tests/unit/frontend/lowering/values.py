"""Values of a function under construction, with the ops that a rewrite adds and what torch computes by them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.fx import Graph, Node
from xdsl.ir import Attribute, Block, SSAValue

from spyre_mlir.frontend.element_types import tensor_type
from tests.unit.frontend.graphs import calls, placeholders


class TorchValues:
    """Adds ops as they are asked for, and computes each with torch on tensors that lie dense in their own memory."""

    def __init__(self, graph: Graph, examples: Iterable[torch.Tensor], *, known: Iterable[int], host: bool) -> None:
        self.ops: list[tuple[str, dict[str, object]]] = []
        self.tensors: dict[SSAValue, torch.Tensor] = {}
        self._known = set(known)
        self._host = host
        self._inputs = dict(zip(placeholders(graph), examples, strict=True))
        self._of: dict[Node, SSAValue] = {node: self._value(value) for node, value in self._inputs.items()}
        self._calls = set(calls(graph))

    def _value(self, tensor: torch.Tensor, result: Attribute | None = None) -> SSAValue:
        dense = tensor.clone(memory_format=torch.contiguous_format)
        value = Block(arg_types=[tensor_type(dense)]).args[0]
        assert result in (None, value.type)
        self.tensors[value] = dense
        return value

    def ssa(self, node: Node) -> SSAValue:
        if node not in self._of:
            assert node in self._calls
            args: Any = [self.tensors[self.ssa(a)] if isinstance(a, Node) else a for a in node.args]
            target: Any = node.target
            self._of[node] = self._value(target(*args, **node.kwargs))
        return self._of[node]

    def known_value(self, node: Node) -> torch.Tensor | None:
        return self._inputs[node] if list(self._inputs).index(node) in self._known else None

    def from_host(self, node: Node) -> bool:
        return self._host

    def emit(
        self, overload: str, *operands: SSAValue, result: Attribute | None = None, **attributes: object
    ) -> SSAValue:
        self.ops.append((overload, attributes))
        space, _, own = overload.rpartition("::")
        packet, _, name = own.partition(".")
        operator = getattr(getattr(getattr(torch.ops, space or "aten"), packet), name or "default")
        names = [a.name for a in operator._schema.arguments if str(a.type) == "Tensor"]
        named: dict[str, Any] = dict(zip(names, [self.tensors[v] for v in operands], strict=True))
        return self._value(operator(**named, **attributes), result)
