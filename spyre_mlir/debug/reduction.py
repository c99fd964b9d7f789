"""Reduction of a module that fails to a small one that fails in the same way."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

from spyre_mlir.debug.reduction_moves import (
    drop_attribute,
    drop_ops,
    drop_results,
    drop_unused_arguments,
    functions,
    removable,
    smaller_sizes,
)
from spyre_mlir.errors import SpyreError
from spyre_mlir.text.render import module_text, parse_module, verify_module

log = logging.getLogger(__name__)

Test = Callable[[ModuleOp], bool]
Move = Callable[[ModuleOp], bool]


def reduce_module(module: ModuleOp, fails: Test, context: Context) -> ModuleOp:
    """Return a smaller module that still fails; no single change that the reduction knows makes it smaller.

    Ops are dropped, many at a time and then one by one; operands of theirs or new arguments of the function replace
    their results. Then results and unused arguments of functions, attributes and sizes follow, until nothing changes.

    Args:
        module: fails, and stays as it is.
        fails: whether a module that verifies fails in the same way; may change the module.
        context: the dialects.
    """
    reduction = _Reduction(module, fails, context)
    before = ""
    while (text := module_text(reduction.module)) != before:
        before = text
        reduction.drop_ops()
        reduction.drop_signatures()
        reduction.drop_attributes()
        reduction.shrink_sizes()
        log.info("%d ops after %d tests", len(removable(reduction.module)), reduction.tests)
    return reduction.module


@dataclass
class _Reduction:
    """The smallest module so far.

    Attributes:
        module: fails.
        fails: whether a module does.
        context: the dialects.
        tests: how many modules have been tested.
    """

    module: ModuleOp
    fails: Test
    context: Context
    tests: int = 0

    def attempt(self, move: Move) -> bool:
        """Make a change and keep it if the module still fails."""
        candidate = self.module.clone()
        return move(candidate) and self._accept(candidate)

    def _accept(self, candidate: ModuleOp) -> bool:
        if not _verifies(candidate):
            return False
        self.tests += 1
        if not self.fails(candidate.clone()):
            return False
        self.module = candidate
        return True

    def drop_ops(self) -> None:
        """Drop ops from the end, in pieces that become smaller."""
        size = max(1, len(removable(self.module)) // 2)
        while size:
            high = len(removable(self.module))
            while high > 0:
                low = max(0, high - size)
                for keep in (True, False):
                    if self.attempt(
                        lambda one, low=low, high=high, keep=keep: drop_ops(one, low, high, keep_operands=keep)
                    ):
                        break
                high = low
            size //= 2

    def drop_signatures(self) -> None:
        """Drop results of functions, and arguments that nothing uses."""
        for number in range(len(functions(self.module))):
            for place in reversed(range(len(functions(self.module)[number].function_type.outputs))):
                self.attempt(lambda one, number=number, place=place: drop_results(one, number, place, place + 1))
            self.attempt(lambda one, number=number: drop_unused_arguments(one, number))

    def drop_attributes(self) -> None:
        """Drop the attributes of ops."""
        named = [(number, name) for number, op in enumerate(self.module.walk()) for name in op.attributes]
        for number, name in named:
            self.attempt(lambda one, number=number, name=name: drop_attribute(one, number, name))

    def shrink_sizes(self) -> None:
        """Make sizes smaller."""
        shrunk = True
        while shrunk:
            shrunk = any(self._read_and_accept(text) for text in smaller_sizes(module_text(self.module)))

    def _read_and_accept(self, text: str) -> bool:
        try:
            return self._accept(parse_module(text, self.context))
        except (ParseError, SpyreError):
            return False


def _verifies(module: ModuleOp) -> bool:
    try:
        verify_module(module)
    except Exception:  # noqa: BLE001 - verifiers assume sound ops, and a candidate may have any
        return False
    return True
