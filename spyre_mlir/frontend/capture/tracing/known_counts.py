"""Counts of classes as a list of Python: `torch.bincount(x, minlength=8).tolist()` has eight, unless a class is above.

Torch knows no length of the result, and asks for it where Python unrolls it, as in `rows.split(counts.tolist())`. The
trace is made again with a check that no class is above `minlength`, which each call makes, too.

Decision: docs/decisions/0234-counts-of-classes-are-as-many-as-the-model-says.md
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

import torch
from torch.overrides import TorchFunctionMode

from spyre_mlir.frontend.capture.tracing.torch_errors import SPECIALIZED
from spyre_mlir.frontend.torch_private import GuardOnDataDependentSymNode, expression_of

_check = cast(Any, torch)._check
_COUNTS = (torch.bincount, torch.Tensor.bincount)
_PLACE_OF_LEAST = 2


class KnownCounts(TorchFunctionMode):
    """Checks that `torch.bincount` gives as many counts as it is told to give at least.

    Args:
        sizes: names of the lengths that Python asks for.
    """

    def __init__(self, sizes: Collection[str]) -> None:
        super().__init__()
        self._sizes = frozenset(sizes)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of torch, and checks the length of counts."""
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if func in _COUNTS:
            least = args[_PLACE_OF_LEAST] if len(args) > _PLACE_OF_LEAST else kwargs.get("minlength", 0)
            size = out.shape[0]
            if isinstance(size, torch.SymInt) and str(expression_of(size)) in self._sizes and least:
                _check(size == least)
        return out


def length_asked(error: BaseException) -> frozenset[str]:
    """Return the size, by name, that Python asks for as a number; empty if it asks another question."""
    condition: Any = error.cond if isinstance(error, GuardOnDataDependentSymNode) else None
    if SPECIALIZED not in str(error) or not getattr(condition, "is_Symbol", False):
        return frozenset()
    return frozenset({str(condition)})


__all__ = ["KnownCounts", "length_asked"]
