"""Numbers that follow from a size that data decides, where operators compute with them: `y * (n - 1)`, `y == n - 1`.

The program is compiled once: they are tensors of one element, which follow from the size of the call.

Decision: docs/decisions/0192-a-bound-stands-for-sizes-that-data-decides.md
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.data_sizes.masked.masking import Masking, symbol_of

aten = torch.ops.aten
_torch = cast(Any, torch)

# Operators whose second argument may be a number, and their forms that take a tensor.
WITH_NUMBERS: dict[object, Any] = {
    **{operator: operator for operator in (aten.div.Tensor, aten.mul.Tensor, aten.add.Tensor, aten.sub.Tensor)},
    aten.div.Scalar: aten.div.Tensor,
    aten.mul.Scalar: aten.mul.Tensor,
    aten.add.Scalar: aten.add.Tensor,
    aten.sub.Scalar: aten.sub.Tensor,
    aten.eq.Scalar: aten.eq.Tensor,
    aten.ne.Scalar: aten.ne.Tensor,
    aten.lt.Scalar: aten.lt.Tensor,
    aten.le.Scalar: aten.le.Tensor,
    aten.gt.Scalar: aten.gt.Tensor,
    aten.ge.Scalar: aten.ge.Tensor,
}
# How numbers follow from each other, and the operators on tensors and numbers that do the same.
_STEPS: dict[object, tuple[Any, Any]] = {
    operator.add: (aten.add.Tensor, aten.add.Scalar),
    operator.sub: (aten.sub.Tensor, aten.sub.Scalar),
    operator.mul: (aten.mul.Tensor, aten.mul.Scalar),
    _torch.sym_max: (aten.maximum.default, aten.clamp_min.default),
    _torch.sym_min: (aten.minimum.default, aten.clamp_max.default),
}


def computed_with(masking: Masking, node: Node) -> bool:
    """Put a tensor in the place of a number that follows from a size."""
    given = cast(Node, node.args[0]).meta["val"]
    number = _tensor(masking, node, node.args[1])
    if number is None:
        return False
    result = node.meta["val"].dtype
    kind = result if result is not torch.bool else given.dtype if given.is_floating_point() else torch.int64
    node.update_arg(1, masking.before(node, aten.to.dtype, number, kind))
    node.target = WITH_NUMBERS[node.target]
    return True


def filled_with(masking: Masking, node: Node) -> bool:
    """Fill with a number that follows from a size."""
    value, mask, number = cast("tuple[Node, Node, object]", node.args)
    tensor = _tensor(masking, node, number)
    if tensor is None:
        return False
    number = masking.before(node, aten.to.dtype, tensor, value.meta["val"].dtype)
    node.target, node.args = aten.where.self, (mask, number, value)
    return True


def _tensor(masking: Masking, node: Node, number: object) -> Node | None:
    """A number as a tensor of whole numbers, by the size of the call; None if it does not follow from sizes alone."""
    if not isinstance(number, Node) or not isinstance(number.meta.get("val"), torch.SymInt):
        return None
    symbol = symbol_of(number.meta["val"])
    if symbol in masking.counts:
        return masking.count(node, symbol, torch.int64)
    if number.target not in _STEPS or len(number.args) != 2:
        return None
    of_tensors, of_numbers = _STEPS[number.target]
    first, other = (n if isinstance(n, int) else _tensor(masking, node, n) for n in number.args)
    if isinstance(first, int) and isinstance(other, Node):
        first = masking.before(node, aten.full.default, [], first, dtype=torch.int64)
    if not isinstance(first, Node) or other is None:
        return None
    step: Callable[..., Any] = of_numbers if isinstance(other, int) else of_tensors
    return masking.before(node, step, first, other)
