"""Calls that store tokens elsewhere than in whole pages of a cache.

Decision: docs/decisions/0253-prompts-fill-whole-pages.md
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.errors import NoRunError, frames_of_ours
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.options import CompileOptions

if TYPE_CHECKING:
    from spyre_mlir.frontend import Program


class ScatteredTokensWarning(UserWarning):
    """A program was compiled again because a call stores tokens elsewhere than in whole pages."""


class CalledWithAnySlots:
    """Base of programs that are compiled again for calls whose slots are no whole pages; other calls run the first."""

    log: FaultLog
    _program: Program
    _options: CompileOptions
    _scattered: Self | None = None

    def _call_in_either_form(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run the bundle, or that of the other form: nothing has run yet when slots are found to be others.

        Raises:
            NoRunError: the program was read from files, and cannot be compiled.
        """
        try:
            return self._call(args, kwargs)
        except NoRunError as met:
            if not can_be_compiled(self._program.module):
                raise
            if self._scattered is None:
                _tell(met)
                self._scattered = self._compiled_again(replace(self._options, whole_pages=False))
        returned = self._scattered(*args, **kwargs)
        self.log = self._scattered.log
        return returned

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program."""

    @abstractmethod
    def _call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run the bundle."""

    @abstractmethod
    def _compiled_again(self, options: CompileOptions) -> Self:
        """Return the same program with other options."""


def can_be_compiled(module: ModuleOp) -> bool:
    """Return whether a program still has its operators: one that was read from files has kernels alone."""
    return any(isinstance(op, AtenOp) for op in module.walk())


def _tell(met: NoRunError) -> None:
    warnings.warn(
        f"{met.message}: the program is compiled again for such calls, and copies the caches in them; "
        "compile with whole_pages=False if most calls are",
        ScatteredTokensWarning,
        stacklevel=frames_of_ours(),
    )


__all__ = ["CalledWithAnySlots", "ScatteredTokensWarning", "can_be_compiled"]
