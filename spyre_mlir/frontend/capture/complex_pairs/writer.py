"""New calls on real and imaginary parts, in the place of a call on complex numbers."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
from torch.fx import Graph, Node
from torch.fx.node import map_arg

from spyre_mlir.frontend.hints import place_and_hint
from spyre_mlir.frontend.torch_private import FakeTensorMode, Operator, expression_of, is_fake

_ATEN = torch.ops.aten
REAL_TYPES = {torch.complex32: torch.float16, torch.complex64: torch.float32, torch.complex128: torch.float64}
Part = Node | float


class ComplexParts(NamedTuple):
    """Real and imaginary part of a value: tensors of one shape, or numbers."""

    re: Part
    im: Part


@dataclass
class ComplexPair:
    """A complex value of a graph.

    Attributes:
        form: what torch has noted of the value.
        parts: real and imaginary part; None until somebody asks for those of a whole.
        whole: both parts in a last dimension of two, as `view_as_real` has them; None until somebody asks for it.
    """

    form: torch.Tensor
    parts: ComplexParts | None = None
    whole: Node | None = None


class PartWriter:
    """Writes calls before a node, with its place in the model.

    Numbers are parts as well: what is known to be 0 or 1 costs no call, except that 0 * x stays, which is NaN for an
    infinite x.

    Attributes:
        written: the calls that nobody has given a name.
    """

    def __init__(self, graph: Graph) -> None:
        """Starts before the first call of a graph."""
        self.written: set[Node] = set()
        self._graph = graph
        self._node = next(node for node in graph.nodes if node.op != "placeholder")
        noted = (getattr(node.meta.get("val"), "fake_mode", None) for node in graph.nodes)
        modes = [mode for mode in noted if mode is not None and mode.shape_env is not None]
        self._mode = modes[0] if modes else FakeTensorMode()

    def move(self, node: Node) -> None:
        """Write before another node from now on."""
        self._node = node

    def __call__(self, target: Any, *args: Any, **kwargs: Any) -> Node:
        """Write one call, and note what its result looks like."""
        with self._graph.inserting_before(self._node):
            made = self._graph.call_function(target, args, kwargs)
        made.meta = place_and_hint(self._node)
        values, named = cast("tuple[Any, Any]", map_arg((args, kwargs), self._value))
        with self._mode, torch.no_grad():
            made.meta["val"] = target(*values, **named)
        self.written.add(made)
        return made

    def _value(self, node: Node) -> Any:
        """What torch has noted of a node, as a tensor of the writer's own mode."""
        value = node.meta["val"]
        if not isinstance(value, torch.Tensor) or (is_fake(value) and cast(Any, value).fake_mode is self._mode):
            return value
        with self._mode:
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)

    def parts(self, value: Any) -> ComplexParts:
        """Return the parts of a pair, a real tensor or a number."""
        if isinstance(value, ComplexParts):
            return value
        if isinstance(value, ComplexPair):
            dtype = REAL_TYPES[value.form.dtype]
            value.parts = ComplexParts(*(self.node(part, value.form, dtype) for part in self.known(value)))
            return value.parts
        if isinstance(value, Node):
            is_tensor = isinstance(value.meta["val"], torch.Tensor)
            return ComplexParts(value if is_tensor else self(_ATEN.scalar_tensor.default, value), 0.0)
        number = complex(value)
        return ComplexParts(number.real, number.imag)

    def known(self, pair: ComplexPair) -> ComplexParts:
        """Return the parts of a pair, of which one that has the same number everywhere may be a number."""
        if pair.parts is None:
            pair.parts = ComplexParts(*(self(_ATEN.select.int, pair.whole, -1, part) for part in (0, 1)))
        return pair.parts

    def whole(self, pair: ComplexPair) -> Node:
        """Return a pair as `view_as_real` gives it."""
        if pair.whole is None:
            pair.whole = self(_ATEN.stack.default, list(self.parts(pair)), -1)
        return pair.whole

    def several(self, call: Node) -> list[Node]:
        """Return the results of a call that has several."""
        return [self(operator.getitem, call, number) for number in range(len(call.meta["val"]))]

    def node(self, part: Part, like: torch.Tensor, dtype: torch.dtype | None = None) -> Node:
        """Return a part as a tensor.

        Args:
            part: a tensor, or a number.
            like: has the shape.
            dtype: the element type, if it is to have one.
        """
        size: list[Any] = [
            extent if type(extent) is int else self._size(like, dim) for dim, extent in enumerate(like.shape)
        ]
        if not isinstance(part, Node):
            return self(_ATEN.full.default, size, part, dtype=dtype or torch.float32)
        if part.meta["val"].dim() != like.dim() or tuple(part.meta["val"].shape) != tuple(like.shape):
            part = self(_ATEN.expand.default, part, size)
        if dtype is not None and part.meta["val"].dtype is not dtype:
            part = self(_ATEN._to_copy.default, part, dtype=dtype)
        return part

    def _size(self, like: torch.Tensor, dim: int) -> Node:
        """The number of a symbolic extent, from a tensor of the graph that has it."""
        for node in self._graph.nodes:
            if node is self._node:
                break
            value = node.meta.get("val")
            if isinstance(value, torch.Tensor):
                for place, extent in enumerate(value.shape):
                    if isinstance(extent, torch.SymInt) and expression_of(extent) == expression_of(like.shape[dim]):
                        return self(_ATEN.sym_size.int, node, place)
        raise ValueError(f"no tensor has the extent {like.shape[dim]}")

    def add(self, a: Part, b: Part) -> Part:
        """Write a + b."""
        return self._linear(_ATEN.add.Tensor, operator.add, a, b)

    def sub(self, a: Part, b: Part) -> Part:
        """Write a - b."""
        if isinstance(b, Node) and not isinstance(a, Node):
            return self.neg(b) if a == 0 else self(_ATEN.rsub.Scalar, b, a)
        return self._linear(_ATEN.sub.Tensor, operator.sub, a, b)

    def _linear(self, target: Operator, known: Any, a: Part, b: Part) -> Part:
        if not isinstance(a, Node) and not isinstance(b, Node):
            return known(a, b)
        if not isinstance(a, Node):
            a, b = b, a
        return a if not isinstance(b, Node) and b == 0 else self(target, a, b)

    def mul(self, a: Part, b: Part) -> Part:
        """Write a * b."""
        if not isinstance(a, Node):
            a, b = b, a
        if not isinstance(a, Node):
            return cast(float, a) * cast(float, b)
        if not isinstance(b, Node) and b == 1:
            return a
        return self.neg(a) if not isinstance(b, Node) and b == -1 else self(_ATEN.mul.Tensor, a, b)

    def div(self, a: Part, b: Part) -> Part:
        """Write a / b, of which one is a tensor."""
        if isinstance(a, Node):
            return self(_ATEN.div.Tensor, a, b)
        return self.mul(self(_ATEN.reciprocal.default, b), a)

    def neg(self, a: Part) -> Part:
        """Write -a."""
        return self(_ATEN.neg.default, a) if isinstance(a, Node) else -a

    def where(self, condition: Node, a: Part, b: Part) -> Node:
        """Write a choice between two parts, each a tensor or a number."""
        if isinstance(a, Node):
            return (
                self(_ATEN.where.self, condition, a, b)
                if isinstance(b, Node)
                else self(_ATEN.where.ScalarOther, condition, a, b)
            )
        if isinstance(b, Node):
            return self(_ATEN.where.ScalarSelf, condition, a, b)
        return self(_ATEN.where.Scalar, condition, a, b)

    def compare(self, name: str, a: Part, b: Part) -> Node:
        """Write a comparison of a tensor with a tensor or a number, as ``eq``."""
        packet: Any = getattr(_ATEN, name)
        if not isinstance(a, Node):
            a, b = b, a
        return self(packet.Tensor if isinstance(b, Node) else packet.Scalar, a, b)
