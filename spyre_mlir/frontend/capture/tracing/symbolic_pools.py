"""Pools over sizes that are symbols, where torch's own need numbers: traced as operators that take symbols.

`max_pool1d` asks for the numbers of sizes, and a pool that leaves one element asks whether there is more than one.

Decision: docs/decisions/0239-pools-take-sizes-that-are-symbols.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

Tensor = torch.Tensor


class SymbolicPools(TorchFunctionMode):
    """Calls other operators for pools that torch cannot trace with symbols."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of torch, or what gives the same."""
        kwargs = kwargs or {}
        written = _WRITTEN.get(func)
        given = args[0] if args else kwargs.get("input")
        if written is not None and isinstance(given, Tensor) and _has_symbols(given):
            made = written(*args, **kwargs)
            if made is not None:
                return made
        return func(*args, **kwargs)


def _has_symbols(given: Tensor) -> bool:
    return any(isinstance(size, torch.SymInt) for size in given.shape)


def _number(setting: Any) -> int:
    return int(cast("Sequence[int]", setting)[0]) if isinstance(setting, Sequence) else int(setting)


def _largest_in_windows(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | None:
    """`max_pool1d`, of an image with one row; with indices torch's takes symbols."""
    if return_indices:
        return None
    stride = stride if stride or stride == 0 else kernel_size  # an empty list stands for none, too
    kernel, step, around, apart = (_number(n) for n in (kernel_size, stride, padding, dilation))
    image = input.unsqueeze(-2)
    return torch.max_pool2d(image, (1, kernel), (1, step), (0, around), (1, apart), ceil_mode).squeeze(-2)


def _of_all(
    input: Tensor, output_size: Any, return_indices: bool = False, *, rank: int, reduce: Callable[..., Tensor]
) -> Tensor | None:
    """A pool that leaves one element of all; None if it leaves more, or is asked for places."""
    sizes = set(cast("Sequence[object]", output_size)) if isinstance(output_size, Sequence) else {output_size}
    if return_indices or sizes != {1}:
        return None
    return reduce(input, list(range(-rank, 0)), True)


_MEANS = {
    torch.adaptive_avg_pool1d: 1,
    functional.adaptive_avg_pool1d: 1,
    functional.adaptive_avg_pool2d: 2,
    functional.adaptive_avg_pool3d: 3,
}
_LARGEST = {
    functional.adaptive_max_pool1d: 1,
    functional.adaptive_max_pool2d: 2,
    functional.adaptive_max_pool3d: 3,
}
_WRITTEN: dict[Any, Callable[..., Tensor | None]] = {
    **dict.fromkeys((torch.max_pool1d, functional.max_pool1d), _largest_in_windows),
    **{pool: partial(_of_all, rank=rank, reduce=torch.mean) for pool, rank in _MEANS.items()},
    **{pool: partial(_of_all, rank=rank, reduce=torch.amax) for pool, rank in _LARGEST.items()},
}

__all__ = ["SymbolicPools"]
