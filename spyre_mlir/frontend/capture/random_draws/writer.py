"""New calls in the graph of an exported program, in the place of one that draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.random_draws.fillings import filling
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import FakeTensorMode, Operator, expression_of

_ATEN = torch.ops.aten
_PLACE = ("stack_trace", "nn_module_stack")
ORDER = "make the tensor contiguous first"


class CallWriter:
    """Writes calls before a node, with its place in the model.

    Attributes:
        node: the call that the new ones stand for.
        last: the newest call.
    """

    def __init__(self, node: Node) -> None:
        """Starts with the node."""
        self.node = node
        self.last = node

    def __call__(self, target: Operator, *args: Any, **kwargs: Any) -> Node:
        """Write one call, and note what its result looks like."""
        with self.node.graph.inserting_before(self.node):
            made = self.node.graph.call_function(target, args, kwargs)
        made.meta = {key: self.node.meta[key] for key in _PLACE if key in self.node.meta}
        values, named = cast("tuple[Any, Any]", map_arg((args, kwargs), value_of))
        with self._mode(), torch.no_grad():
            made.meta["val"] = cast(Any, target)(*values, **named)
        self.last = made
        return made

    def draw(
        self,
        name: str,
        like: Node,
        *numbers: Any,
        form: torch.Tensor | None = None,
        size: Sequence[object] | None = None,
    ) -> Node:
        """Draw what fills a tensor.

        Args:
            name: of the filling.
            like: has the shape.
            numbers: arguments of the filling.
            form: has the type and the strides, if not `like`.
            size: the shape, if not that of `like`; then it is filled in row-major order.
        """
        wanted = value_of(like) if form is None else form
        extents = list(value_of(like).shape) if size is None else list(size)
        sizes = [
            self(_ATEN.sym_size.int, like, dim) if isinstance(e, torch.SymInt) else e for dim, e in enumerate(extents)
        ]
        stride = [] if size is not None or in_row_major_order(wanted) else self._strides(wanted)
        return self(filling(name), sizes, stride, wanted.dtype, *numbers)

    def _strides(self, form: torch.Tensor) -> list[int]:
        strides = form.stride()
        if not all(type(number) is int for number in (*strides, *form.shape)):
            name = str(self.node.target).removesuffix(".default")
            raise UnsupportedError(
                f"{name} draws in the order of a memory whose strides depend on symbols",
                where=place_of(self.node),
                hint=f"{ORDER}, or export with a static size there",
            )
        return list(strides)

    def _mode(self) -> Any:
        """The mode of the tensors that torch has noted."""
        values = (n.meta.get("val") for n in (self.node, *self.node.all_input_nodes))
        return (
            next((mode for v in values if (mode := getattr(v, "fake_mode", None)) is not None), None)
            or FakeTensorMode()
        )


def in_row_major_order(form: torch.Tensor) -> bool:
    """Return whether the elements of a tensor lie in row-major order without gaps."""
    expected: Any = 1
    for extent, step in zip(reversed(form.shape), reversed(form.stride()), strict=True):
        if not (type(extent) is int and extent == 1) and not _equal(step, expected):
            return False
        expected = expected * extent
    return True


def _equal(a: Any, b: Any) -> bool:
    """Return whether numbers are equal for all values of symbols; torch's ``==`` would take it for granted."""
    one, other = (expression_of(n) if isinstance(n, torch.SymInt) else n for n in (a, b))
    return bool(one == other)


def value_of(node: Node) -> Any:
    """Return what torch has noted of the result of a node."""
    return node.meta["val"]
