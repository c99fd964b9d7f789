"""Calls that meet larger integers than the device has.

Decision: docs/decisions/0159-large-integers-are-the-hosts.md
"""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import replace
from typing import Any, Self

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.ir.call_effects import runs_once
from spyre_mlir.errors import FaultKind, IntegerRangeError, MachineFault, frames_of_ours
from spyre_mlir.options import CompileOptions
from spyre_mlir.runtime.one_at_a_time import OneAtATime
from spyre_mlir.runtime.whole_pages import CalledWithAnySlots, can_be_compiled


class LargerIntegersWarning(UserWarning):
    """A program was compiled again because a call had integers beyond those of the device."""


class CalledExactly(CalledWithAnySlots):
    """Base of programs that are compiled again where a call meets larger integers than the device has."""

    _exact: Self | None = None
    _turns: OneAtATime

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the bundle and returns what the model would; calls from several threads take turns.

        Raises:
            InputError: the inputs are not of the shapes it was compiled for.
            MachineFault: the program misbehaved on the machine.
            OverflowFault: numbers went beyond DLFloat16, and the model was compiled to refuse that.
        """
        from spyre_mlir.frontend import untraced

        return untraced(self._in_turn, args, kwargs)

    def _in_turn(self, *args: Any, **kwargs: Any) -> Any:
        with self._turns:
            if self._exact is None:
                try:
                    return self._call_in_either_form(args, kwargs)
                except (IntegerRangeError, MachineFault) as met:
                    if (options := exact_options(met, self._options, self._program.module)) is None:
                        raise
                    self._exact = self._compiled_again(options)
            returned = self._exact(*args, **kwargs)
            self.log = self._exact.log
            return returned

    def in_exact_numerics(self) -> Self:
        """Return the same program, whose calls compute as eager does."""
        made = copy(self)
        made._options = replace(self._options, numerics="exact")
        made._exact = None if self._exact is None else self._exact.in_exact_numerics()
        made._scattered = None if self._scattered is None else self._scattered.in_exact_numerics()
        return made


def exact_options(
    met: IntegerRangeError | MachineFault, options: CompileOptions, module: ModuleOp
) -> CompileOptions | None:
    """Return the options with which a call that failed runs exactly; None if it is to fail, as other faults do.

    A program that has drawn random numbers would draw others, one that has met other ranks would be alone, one that was
    read from files cannot be compiled, and one that refuses host steps has no other way: all of them fail.

    Args:
        met: what ended the call.
        options: those of the program.
        module: what it was compiled from.
    """
    integers = isinstance(met, IntegerRangeError) or met.kind is FaultKind.INT32_OVERFLOW
    if not integers or options.integers != "auto" or options.host_fallback == "error":
        return None
    if runs_once(module) or not can_be_compiled(module):
        return None
    warnings.warn(
        f"{met.message}: the program is compiled again, and its larger integers are computed on the host; "
        "compile with integers='exact' to have that from the first call on",
        LargerIntegersWarning,
        stacklevel=frames_of_ours(),
    )
    return replace(options, integers="exact")


__all__ = ["CalledExactly", "LargerIntegersWarning", "exact_options"]
