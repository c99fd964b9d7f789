"""How results are held against torch's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

TOLERANCE = 1e-4  # of exact numerics: max|a - b| over max|b|
NOISE = 1e-12  # results of double precision that should be 0, as sin(pi), are nothing to be right about
HALF_TOLERANCE = 2.0**-10  # the same for results that are returned as float16
ULP = 2.0**-9
INT32 = 2**31 - 1
LARGEST, SMALLEST = 2.0**32 * (2 - 2 * ULP), 2.0**-31

# Results that say which element was taken: of equal elements any will do.
SELECTING = (
    *("argmax", "argmin", "max", "min", "aminmax", "median", "nanmedian", "mode", "kthvalue", "cummax", "cummin"),
    *("sort", "argsort", "topk", "max_pool1d", "max_pool2d", "max_pool3d", "max_pool2d_with_indices"),
    *("max_pool3d_with_indices", "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d"),
)
# Their vectors are unique up to a factor, which torch chooses otherwise in double precision, of some on some processors
# alone: its own are the reference.
UP_TO_A_FACTOR = ("linalg.eig", "linalg.eigh", "linalg.svd", "svd")
# What they hold is up to the implementation: shape and type are all there is to compare.
UNDEFINED = ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted")


def exceptional(tensors: Sequence[Any]) -> list[str]:
    """Which values that DL16 has no code for are among these: the written exceptions."""
    found: set[str] = set()
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor) or tensor.is_complex() or tensor.numel() == 0:
            continue
        if not tensor.is_floating_point():
            wide = tensor.dtype is torch.int64 and bool((tensor.double().abs() > INT32).any())
            found |= {"beyond 32 bits"} if wide else set()
            continue
        x = tensor.detach().double()
        size = x[torch.isfinite(x)].abs()
        found |= {"nan or infinity"} if not bool(torch.isfinite(x).all()) else set()
        found |= {"range"} if bool(((size > LARGEST) | ((size > 0) & (size < SMALLEST))).any()) else set()
        found |= {"-0"} if bool(((x == 0) & torch.signbit(x)).any()) else set()
    return sorted(found)


def in_parts(results: Any) -> Any:
    """Results with the parts of complex numbers in a last dimension of two."""

    def parts(result: Any) -> Any:
        if not isinstance(result, torch.Tensor) or result.layout is not torch.strided:
            return result
        return torch.view_as_real(result.resolve_conj()) if result.is_complex() else result.resolve_neg()

    return None if results is None else tuple(map(parts, results))


def error_of(got: torch.Tensor, wanted: torch.Tensor, *, merged: bool) -> float:
    """max|a - b| over max|b| of the finite elements; infinite if other elements are finite in one than in the other.

    Args:
        got: our result.
        wanted: torch's.
        merged: whether NaN and infinity are one symbol.
    """
    a, b = got.detach().double().numpy(), wanted.detach().double().numpy()
    finite = np.isfinite(b)
    if not np.array_equal(np.isfinite(a), finite):
        return float("inf")
    if not merged and not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    largest = float(np.abs(b[finite]).max(initial=0.0))
    difference = float(np.abs(a[finite] - b[finite]).max(initial=0.0))
    return difference / max(largest, NOISE) if largest else difference


def equally_selected(x: torch.Tensor, got: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Whether two index results take equal elements: along one dimension, of the last ones as one, or of all."""
    if got.numel() == 0 or x.numel() == 0 or bool((got < 0).any()):
        return False
    if got.ndim == 0:
        return int(got) < x.numel() and torch.equal(x.reshape(-1)[got], x.reshape(-1)[wanted])
    if any(_along(x.flatten(-n), got.flatten(-n), wanted.flatten(-n)) for n in range(2, min(x.ndim, got.ndim) + 1)):
        return True
    return _along(x, got, wanted)


def _along(x: torch.Tensor, got: torch.Tensor, wanted: torch.Tensor) -> bool:
    """As `equally_selected`, along one dimension."""
    for dim in range(x.ndim):
        i, j = (n.unsqueeze(dim) if n.ndim == x.ndim - 1 else n for n in (got, wanted))
        fits = i.ndim == x.ndim and all(i.shape[d] == x.shape[d] for d in range(x.ndim) if d != dim)
        if fits and bool((i < x.shape[dim]).all()) and torch.equal(x.gather(dim, i), x.gather(dim, j)):
            return True
    return False
