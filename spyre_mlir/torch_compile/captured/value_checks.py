"""Checks of values inside of torch's C++ operators, which pass while a graph runs without values.

`istft` checks that its windows leave no sample without weight. The check only raises an error, which the import or a
step of the host finds (`spyre_mlir.frontend.capture.effects.windows`), so that passing it changes no result.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from typing_extensions import override

_CHECKING = frozenset({"istft"})


class ChecksPassed(TorchFunctionMode):
    """Mode in which functions of torch that check values find them valid."""

    @override
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of torch."""
        if getattr(func, "__name__", None) in _CHECKING:
            with _NothingEqual():
                return func(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


class _NothingEqual(TorchDispatchMode):
    """Mode in which `aten.equal` is false, by which `istft` would see that a window fails its check."""

    @override
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Runs an operator."""
        return False if func is cast(Any, torch.ops.aten).equal.default else func(*args, **(kwargs or {}))


__all__ = ["ChecksPassed"]
