"""Checks of numbers that operators of torch make in C++, passed where a graph runs without numbers.

`istft` asks whether its windows leave a sample without weight, and would end the run. It decides nothing but an error.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from typing_extensions import override

_CHECKING = frozenset({"istft"})


class ChecksPassed(TorchFunctionMode):
    """Mode in which functions that check numbers find them right."""

    @override
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of torch."""
        if getattr(func, "__name__", None) in _CHECKING:
            with _NothingEqual():
                return func(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


class _NothingEqual(TorchDispatchMode):
    """A fault is there where `aten.equal` finds a truth value equal to true."""

    @override
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs an operator."""
        return False if func is cast(Any, torch.ops.aten).equal.default else func(*args, **(kwargs or {}))


__all__ = ["ChecksPassed"]
