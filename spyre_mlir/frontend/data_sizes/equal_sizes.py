"""Sizes that data decides, and that a program says are equal: one symbol stands for all of them.

Torch gives each call that makes a size a symbol of its own, also where two calls read the same mask. Where their
results meet, as in `x[mask] + y[mask]`, it notes that the sizes are equal, and the program checks it in each call.

Attention compares no numbers of keys and values in a trace: the comparison is written into the graph.

Used, private: `ShapeEnv.deferred_runtime_asserts`.

Decision: docs/decisions/0192-a-bound-stands-for-sizes-that-data-decides.md
Decision: docs/decisions/0225-sizes-that-torch-compares-are-equal.md
"""

from __future__ import annotations

import operator
from typing import Any, cast

import torch
from torch.fx import Graph, Node

from spyre_mlir.frontend.torch_private import expression_of, free_unbacked_symbols

aten = torch.ops.aten
_check = cast(Any, torch)._check


def note_lengths_of_attentions(graph: Graph) -> None:
    """Check in front of each attention that there are as many keys as values, where data decides both numbers."""
    for node in graph.find_nodes(op="call_function", target=aten.scaled_dot_product_attention.default):
        _, key, value = (cast(Node, given).meta["val"].shape for given in node.args[:3])
        lengths = key[-2], value[-2]
        symbols = [expression_of(n) for n in lengths if isinstance(n, torch.SymInt) and free_unbacked_symbols(n)]
        if len(symbols) != len(lengths) or symbols[0] == symbols[1]:
            continue
        numbers = [_number_before(node, symbol) for symbol in symbols]
        if None not in numbers:
            _write_check(node, cast("list[Node]", numbers))


def _number_before(node: Node, symbol: Any) -> Node | None:
    """A number in front of a call that is this size; torch asks for each size that a call makes."""
    for earlier in node.graph.nodes:
        if earlier is node:
            return None
        if isinstance(size := earlier.meta.get("val"), torch.SymInt) and expression_of(size) == symbol:
            return earlier
    return None


def _write_check(node: Node, numbers: list[Node]) -> None:
    first, second = (number.meta["val"] for number in numbers)
    with node.graph.inserting_before(node):
        equal = node.graph.call_function(operator.eq, tuple(numbers))
        equal.meta["val"] = first == second
        text = f"attention has {first} keys and {second} values"
        check = node.graph.call_function(aten._assert_scalar.default, (equal, text))
    check.meta = {name: noted for name, noted in node.meta.items() if name != "val"}
    _check(first == second)


def size_expression(size: torch.SymInt) -> Any:
    """Return the expression that a size is, with one symbol for those that are equal; a number if it is known."""
    expression = expression_of(size)
    if not expression.free_symbols:
        return expression
    checks = _equalities(cast(Any, size).node.shape_env)
    for left, right in checks:
        if right.is_number and left == expression:  # parts of a tensor that was split
            return right
    equal = _equal(checks)
    return expression.subs(equal) if equal else expression


def _equalities(noted: Any) -> list[tuple[Any, Any]]:
    """Both sides of the equations that a program checks, a number on the right."""
    checks = [check.expr for of_symbol in noted.deferred_runtime_asserts.values() for check in of_symbol]
    sides = [(check.lhs, check.rhs) for check in checks if str(getattr(check, "rel_op", "")) == "=="]
    return [(right, left) if left.is_number else (left, right) for left, right in sides]


def _equal(checks: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """The symbols that have another one in their place: of equal ones the first by its name."""
    found = dict[Any, Any]()
    for left, right in checks:
        if left.is_Symbol and right.is_Symbol:
            first, other = sorted((_first(found, left), _first(found, right)), key=_order)
            if first != other:
                found[other] = first
    return {symbol: _first(found, symbol) for symbol in found}


def _first(found: dict[Any, Any], symbol: Any) -> Any:
    while symbol in found:
        symbol = found[symbol]
    return symbol


def _order(symbol: Any) -> tuple[int, str]:
    """Shorter names first: `u10` is behind `u9`."""
    return len(str(symbol)), str(symbol)


__all__ = ["note_lengths_of_attentions", "size_expression"]
