"""Sizes that data decides, where an operator of torch takes another way for 0 or 1: traced for other sizes.

Torch asks whether a size is 0 to leave early, as attention and `roll` do, or to refuse it, as a norm of a batch refuses
1. A trace without values has no answer. It is made again with a check of the size, which each call makes, too.

Decision: docs/decisions/0212-operators-that-ask-for-zero-elements-get-some.md
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator
from traceback import extract_tb
from typing import Any, cast

import torch
from torch.export import ExportedProgram
from torch.fx import Node
from torch.overrides import TorchFunctionMode

from spyre_mlir.frontend.capture.graph_passes import with_own_graph
from spyre_mlir.frontend.capture.tracing.assumed import ASSUMED
from spyre_mlir.frontend.locations import of_model
from spyre_mlir.frontend.torch_private import (
    GuardOnDataDependentSymNode,
    expression_of,
    free_unbacked_symbols,
    tree_flatten,
)

_ATEN = torch.ops.aten
_check = cast(Any, torch)._check
# Files of torch through which a question about a number passes on its way from who asks it.
_ON_THE_WAY = ("torch/__init__.py", "/fx/experimental/", "/utils/_stats.py", "/_subclasses/", "/fx/interpreter.py")
# Functions of torch in Python, of which a trace has only what they call.
_IN_PYTHON = ("torch/nn/", "torch/functional.py")

# A size by name, and a number that torch compares it with: it is above 0, or other than this number.
Unlike = tuple[str, int]


class SizesUnlike(TorchFunctionMode):
    """Checks that some sizes are other than numbers, at the first tensor that has them.

    Args:
        pairs: names of the sizes, each with a number.
    """

    def __init__(self, pairs: Collection[Unlike]) -> None:
        super().__init__()
        self._open = set(pairs)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of torch, and checks the sizes of what it gives."""
        out = func(*args, **(kwargs or {}))
        if self._open:
            for value in tree_flatten(out)[0]:
                for _, size, pair in _sizes(value, self._open):
                    self._open.discard(pair)
                    _check(_is_unlike(size, pair))
        return out


def sizes_asked(error: BaseException | None) -> frozenset[Unlike]:
    """Return the sizes about which torch asks, each with the number that it is compared with; none if the model asks.

    The number is 0 unless torch asks of a single size whether it is another one.
    """
    condition = asked_by_torch(error)
    if condition is None:
        return frozenset[Unlike]()
    names = [str(symbol) for symbol in condition.free_symbols]
    number = 0
    if len(names) == 1 and getattr(condition, "rel_op", "") in ("==", "!="):
        sides = [condition.lhs, condition.rhs]
        number = next((int(side) for side in sides if side.is_Integer and any(s.is_Symbol for s in sides)), 0)
    return frozenset((name, number) for name in names)


def conditions_of(pairs: Collection[Unlike]) -> frozenset[str]:
    """Return the conditions that are checked of some sizes, as torch writes them."""
    return frozenset(f"{name} >= 1" if number == 0 else f"Ne({name}, {number})" for name, number in pairs)


def asked_by_torch(error: BaseException | None) -> Any:
    """Return the condition, as an expression of sizes, that torch's own code asks about; None if there is none."""
    if not isinstance(error, GuardOnDataDependentSymNode):
        return None
    asker, condition = _asker(error), cast(Any, error.cond)
    return None if not asker or of_model(asker) or not hasattr(condition, "free_symbols") else condition


def asked_by_operator(error: BaseException) -> bool:
    """Return whether an operator asks, of which a program has a call; a function of torch in Python takes its way."""
    asker = _asker(error)
    return not any(part in asker for part in _IN_PYTHON)


def _asker(error: BaseException) -> str:
    """The file of the code that asks about a number; empty if it is not known."""
    # A call passes modes, torch's and ours, wherever it comes from.
    frames = [f.filename for f in extract_tb(error.__traceback__) if f.name != "__torch_function__"]
    askers = (file for file in reversed(frames) if not any(part in file for part in _ON_THE_WAY))
    return next(askers, "")


def checked_unlike(exported: ExportedProgram, pairs: Collection[Unlike]) -> ExportedProgram:
    """Return a program that checks some sizes at the first tensors that have them, and says that it assumes it.

    Args:
        exported: the program, which stays as it is.
        pairs: names of the sizes, each with a number.
    """
    pairs = set(pairs)
    checked = with_own_graph(exported)
    graph = checked.graph
    found = list[tuple[Node, int, torch.SymInt, Unlike]]()
    for node in graph.nodes:
        for dim, size, pair in _sizes(node.meta.get("val"), pairs):
            pairs.discard(pair)
            found.append((node, dim, size, pair))
    for node, dim, size, pair in found:
        _check(_is_unlike(size, pair))
        with graph.inserting_after(node):
            length = graph.call_function(_ATEN.sym_size.int, (node, dim))
        compare, number = (operator.ge, 1) if pair[1] == 0 else (operator.ne, pair[1])
        with graph.inserting_after(length):
            holds = graph.call_function(compare, (length, number))
        (condition,) = conditions_of({pair})
        with graph.inserting_after(holds):
            check = graph.call_function(_ATEN._assert_scalar.default, (holds, f"{ASSUMED}{condition}"))
        for made, value in ((length, size), (holds, _is_unlike(size, pair)), (check, None)):
            made.meta = {**{k: v for k, v in node.meta.items() if k != "unbacked_bindings"}, "val": value}
    return checked


def _is_unlike(size: torch.SymInt, pair: Unlike) -> Any:
    return size >= 1 if pair[1] == 0 else size != pair[1]


def _sizes(value: object, pairs: Collection[Unlike]) -> Iterator[tuple[int, torch.SymInt, Unlike]]:
    """The dimensions of a tensor whose size is one of some sizes, and decided by data."""
    if isinstance(value, torch.Tensor):
        for dim, size in enumerate(value.shape):
            if isinstance(size, torch.SymInt) and free_unbacked_symbols(size):
                for pair in sorted(pairs):
                    if pair[0] == str(expression_of(size)):
                        yield dim, size, pair


__all__ = [
    "SizesUnlike",
    "Unlike",
    "asked_by_operator",
    "asked_by_torch",
    "checked_unlike",
    "conditions_of",
    "sizes_asked",
]
