"""Sizes that data decides, where an operator of torch takes another way for 0 elements: traced for sizes above 0.

Torch asks whether a size is 0 to leave early, as attention and `roll` do, or to refuse it. A trace
without values has no answer. It is made again with a check of the size, which each call makes, too.

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


class SizesAboveZero(TorchFunctionMode):
    """Checks that some sizes are above 0, at the first tensor that has them.

    Args:
        symbols: names of the sizes.
    """

    def __init__(self, symbols: Collection[str]) -> None:
        super().__init__()
        self._open = set(symbols)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of torch, and checks the sizes of what it gives."""
        out = func(*args, **(kwargs or {}))
        if self._open:
            for value in tree_flatten(out)[0]:
                for _, size in _sizes(value, self._open):
                    self._open.discard(str(expression_of(size)))
                    _check(size >= 1)
        return out


def sizes_asked(error: BaseException | None) -> frozenset[str]:
    """Return the names of the sizes about which torch asks, to compare them with a number; none if the model asks."""
    condition = asked_by_torch(error)
    return frozenset[str]() if condition is None else frozenset(str(symbol) for symbol in condition.free_symbols)


def asked_by_torch(error: BaseException | None) -> Any:
    """Return the condition, as an expression of sizes, that torch's own code asks about; None if there is none."""
    if not isinstance(error, GuardOnDataDependentSymNode):
        return None
    # A call passes modes, torch's and ours, wherever it comes from.
    frames = [f.filename for f in extract_tb(error.__traceback__) if f.name != "__torch_function__"]
    askers = (file for file in reversed(frames) if not any(part in file for part in _ON_THE_WAY))
    asker = next(askers, None)
    condition: Any = error.cond
    return None if asker is None or of_model(asker) or not hasattr(condition, "free_symbols") else condition


def checked_above_zero(exported: ExportedProgram, symbols: Collection[str]) -> ExportedProgram:
    """Return a program that checks some sizes at the first tensors that have them.

    Args:
        exported: the program, which stays as it is.
        symbols: names of the sizes.
    """
    symbols = set(symbols)
    checked = with_own_graph(exported)
    graph = checked.graph
    found = list[tuple[Node, int, torch.SymInt]]()
    for node in graph.nodes:
        for dim, size in _sizes(node.meta.get("val"), symbols):
            symbols.discard(str(expression_of(size)))
            found.append((node, dim, size))
    for node, dim, size in found:
        _check(size >= 1)
        with graph.inserting_after(node):
            length = graph.call_function(_ATEN.sym_size.int, (node, dim))
        with graph.inserting_after(length):
            above = graph.call_function(operator.ge, (length, 1))
        text = f"Runtime assertion failed for expression {expression_of(size)} >= 1"
        with graph.inserting_after(above):
            check = graph.call_function(_ATEN._assert_scalar.default, (above, text))
        for made, value in ((length, size), (above, size >= 1), (check, None)):
            made.meta = {**{k: v for k, v in node.meta.items() if k != "unbacked_bindings"}, "val": value}
    return checked


def _sizes(value: object, symbols: Collection[str]) -> Iterator[tuple[int, torch.SymInt]]:
    """The dimensions of a tensor whose size is one of some symbols, and decided by data."""
    if isinstance(value, torch.Tensor):
        for dim, size in enumerate(value.shape):
            if isinstance(size, torch.SymInt) and free_unbacked_symbols(size) and str(expression_of(size)) in symbols:
                yield dim, size


__all__ = ["SizesAboveZero", "asked_by_torch", "checked_above_zero", "sizes_asked"]
