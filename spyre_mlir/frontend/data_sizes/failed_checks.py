"""Checks of sizes that fail in a call: which calls have made the sizes, and what the check expects of them."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.capture.unsupported import op_name
from spyre_mlir.frontend.data_sizes.branches import makes_size
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import OpOverload

_NOT = cast(Any, torch).sym_not


def failed_check(check: Node, known: Mapping[Node, Any]) -> InputError | None:
    """Return the error for a check of sizes that calls have made; None if it is of something else.

    Args:
        check: the check.
        known: values of the program's nodes in this call.
    """
    condition = check.args[0] if check.args else None
    if not isinstance(condition, Node):
        return None
    compare: Any = condition.target
    sides = condition.args
    if compare is _NOT and isinstance(sides[0], Node) and sides[0].target is operator.eq:
        compare, sides = operator.ne, sides[0].args
    if len(sides) != 2 or not isinstance(sides[0], Node):
        return None
    if isinstance(sides[1], Node):
        return _of_two(check, (sides[0], sides[1]), known) if compare is operator.eq else None
    if compare is operator.gt and isinstance(sides[1], int):
        compare, sides = operator.ge, (sides[0], sides[1] + 1)
    size, number = cast("tuple[Node, int]", sides)
    maker = _maker(size)
    expected = {
        operator.ge: f"{number} at least",
        operator.le: f"{number} at most",
        operator.ne: f"another one than {number}",
        operator.eq: f"{number}",
    }.get(compare)
    if maker is None or expected is None or size not in known:
        return None
    kind = "number" if maker.target is torch.ops.aten._local_scalar_dense.default else "size"
    return InputError(
        f"{op_name(maker)} gives a {kind} of {known[size]} in this call, expected {expected}",
        where=place_of(maker),
        hint="leave such calls out: the model checks it, or a function of torch refuses it",
    )


def _of_two(check: Node, sizes: tuple[Node, Node], known: Mapping[Node, Any]) -> InputError | None:
    """The error for two sizes that a check expects to be equal; None if their values are not known."""
    (one, two), (first, second) = sizes, map(_maker, sizes)
    if not {one, two} <= known.keys():
        return None
    if first is None or second is None:
        return InputError(
            f"two sizes that follow from the data are {known[one]} and {known[two]} in this call, expected equal sizes",
            where=place_of(check),
            hint="if eager broadcasts one row, write expand in the model; or leave such calls out",
        )
    return InputError(
        f"{op_name(first)} gives a size of {known[one]} in this call, and {op_name(second)} at "
        f"{place_of(second)} one of {known[two]}, expected equal sizes",
        where=place_of(first),
        hint="a function of torch compares them: give both the same mask, or compile each case by itself",
    )


def _maker(size: Node) -> Node | None:
    """The call that has made a size; None if it follows from several, or is computed of what a call has made."""
    while not makes_size(size):
        if len(size.all_input_nodes) != 1 or not isinstance(size.target, OpOverload):
            return None
        (size,) = size.all_input_nodes
    return size


__all__ = ["failed_check"]
