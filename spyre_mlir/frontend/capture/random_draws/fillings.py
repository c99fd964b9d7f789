"""The operators of the namespace ``random``: tensors of a size and strides, filled by torch with random numbers.

Torch draws in the order in which elements lie in memory, so the strides of a tensor decide which element gets which
number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from spyre_mlir.ops.draws import NAMESPACE

Tensor = torch.Tensor


def _integers(tensor: Tensor, low: int | None = None, high: int | None = None) -> Tensor:
    return tensor.random_() if low is None else cast(Any, tensor).random_(low, high)


_FILLINGS: dict[str, tuple[str, Callable[..., Tensor]]] = {
    "uniform": ("float low=0.0, float high=1.0", Tensor.uniform_),
    "normal": ("float mean=0.0, float std=1.0", Tensor.normal_),
    "bernoulli": ("float p=0.5", Tensor.bernoulli_),
    "exponential": ("float lambd=1.0", Tensor.exponential_),
    "geometric": ("float p", Tensor.geometric_),
    "cauchy": ("float median=0.0, float sigma=1.0", Tensor.cauchy_),
    "log_normal": ("float mean=1.0, float std=2.0", Tensor.log_normal_),
    "integers": ("int? low=None, int? high=None", _integers),
}


def _unfilled(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> Tensor:
    """A tensor of these strides; in row-major order if there are none."""
    return torch.empty_strided(size, stride, dtype=dtype) if stride else torch.empty(size, dtype=dtype)


def _define() -> Any:
    library = cast(Any, torch.library).Library(NAMESPACE, "FRAGMENT")
    for name, (arguments, fill) in _FILLINGS.items():

        def draw(
            size: Any, stride: Any, dtype: Any, *given: Any, fill: Callable[..., Tensor] = fill, **named: Any
        ) -> Tensor:
            # Torch leaves out what equals a default.
            return fill(_unfilled(size, stride, dtype), *given, **named)

        def shaped(size: Any, stride: Any, dtype: Any, *_: Any, **__: Any) -> Tensor:
            return _unfilled(size, stride, dtype)

        signature = f"{name}(SymInt[] size, int[] stride, ScalarType dtype, {arguments}) -> Tensor"
        library.define(signature, tags=(torch.Tag.nondeterministic_seeded,))
        library.impl(name, draw, "CompositeExplicitAutograd")
        cast(Any, torch.library).register_fake(f"{NAMESPACE}::{name}", shaped, lib=library)
    return library


LIBRARY = _define()


def filling(name: str) -> Any:
    """Return the operator that fills a tensor in one way, e.g. ``uniform``."""
    return getattr(getattr(torch.ops, NAMESPACE), name).default
