"""Calls that draw what fills a tensor, in the place of others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import Node

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.call_writer import CallWriter, value_of
from spyre_mlir.frontend.capture.complex_pairs.writer import REAL_TYPES
from spyre_mlir.frontend.capture.random_draws.fillings import filling
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import expression_of

_ATEN = torch.ops.aten
ORDER = "make the tensor contiguous first"


class DrawWriter(CallWriter):
    """Writes draws before a node, with its place in the model."""

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
        if wanted.is_complex():
            return self._pairs(name, sizes, stride, wanted.dtype, *numbers)
        return self(filling(name), sizes, stride, wanted.dtype, *numbers)

    def _pairs(self, name: str, sizes: list[Any], stride: list[int], dtype: torch.dtype, *numbers: float) -> Node:
        """Complex numbers: torch fills both parts, one beside the other, each with half of the variance."""
        beside = [*(2 * step for step in stride), 1] if stride else []
        given = (numbers[0], numbers[1] / math.sqrt(2)) if name == "normal" else numbers
        drawn = self(filling(name), [*sizes, 2], beside, REAL_TYPES[dtype], *given)
        return self(_ATEN.view_as_complex.default, drawn)

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
