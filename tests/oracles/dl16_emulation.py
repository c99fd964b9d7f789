"""torch with every result rounded to DLFloat16: what a device without wider intermediates would compute.

Written from the definition of the format (sign, six exponent bits with bias 31, nine fraction bits, no subnormals,
nearest with ties away from zero, one code for infinity and NaN); imports nothing of the compiler, so that the two can
be held against each other. Arithmetic inside one ATen op is float64; its floating results are rounded, views are not.
"""

from __future__ import annotations

import copy
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

FRACTION = 512
LARGEST = (1 + 510 / FRACTION) * 2.0**32
SMALLEST = (1 + 1 / FRACTION) * 2.0**-31


def rounded(values: torch.Tensor) -> torch.Tensor:
    """The nearest DLFloat16 values, in the dtype of the tensor; finite values saturate, infinities become NaN."""
    wide = values.double()
    magnitude = wide.abs()
    _, exponent = torch.frexp(magnitude)  # magnitude = [0.5, 1) * 2 ** exponent
    step = torch.ldexp(torch.ones_like(wide), exponent - 1) / FRACTION
    nearest = torch.floor(magnitude / step + 0.5) * step
    nearest = torch.where(magnitude == 0, 0.0, nearest).clamp(max=LARGEST)
    tiny = torch.where(magnitude >= SMALLEST / 2, SMALLEST, 0.0)
    nearest = torch.where(magnitude < SMALLEST, tiny, nearest)
    nearest = torch.where(torch.isfinite(wide), nearest, torch.nan)
    return torch.copysign(nearest, wide).to(values.dtype)


class RoundEveryResult(TorchDispatchMode):
    """Rounds the floating results of every ATen op that is no view; casts to narrower floats stay wide."""

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Runs the op in double precision, and rounds what it returns."""
        wider = dict(kwargs or {})
        if wider.get("dtype") in (torch.float16, torch.bfloat16, torch.float32):
            wider["dtype"] = torch.float64
        result = func(*args, **wider)
        if func.is_view:
            return result
        if func._schema.is_mutable:
            return tree_map(_round_in_place, result)
        return tree_map(_rounded_leaf, result)


def _round_in_place(leaf: object) -> object:
    if isinstance(leaf, torch.Tensor) and leaf.is_floating_point():
        leaf.copy_(_with_infinities(leaf))
    return leaf


def _rounded_leaf(leaf: object) -> object:
    return _with_infinities(leaf) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point() else leaf


def _with_infinities(values: torch.Tensor) -> torch.Tensor:
    """Rounded, but infinities stay: torch makes masks of them, and what is judged is rounding."""
    return torch.where(torch.isinf(values), values, rounded(values))


@contextmanager
def new_tensors_in_doubles() -> Generator[None]:
    """Gives tensors that a model makes of numbers double precision, and takes layers apart."""
    before, whole = torch.get_default_dtype(), torch.backends.mha.get_fastpath_enabled()
    torch.set_default_dtype(torch.float64)
    # A layer of a transformer as one op would be rounded once.
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
        torch.backends.mha.set_fastpath_enabled(whole)


def emulate(model: torch.nn.Module, *args: torch.Tensor) -> torch.Tensor:
    """The result of a model whose weights, inputs and intermediate results are DLFloat16."""
    narrow = copy.deepcopy(model).double()
    with torch.no_grad():
        for tensor in [*narrow.parameters(), *narrow.buffers()]:
            if tensor.is_floating_point():
                tensor.copy_(rounded(tensor))
        inputs = [_rounded_leaf(arg.double() if arg.is_floating_point() else arg) for arg in args]
        with new_tensors_in_doubles(), RoundEveryResult():
            return narrow(*inputs)


def double(model: torch.nn.Module, *args: torch.Tensor) -> torch.Tensor:
    """The result of a model in double precision."""
    with torch.no_grad(), new_tensors_in_doubles():
        wide = [arg.double() if arg.is_floating_point() else arg for arg in args]
        return copy.deepcopy(model).double()(*wide)


def rms_error(got: torch.Tensor, expected: torch.Tensor) -> float:
    """Root mean square of the difference, over that of what is expected."""
    difference = got.double() - expected.double()
    return float(difference.square().mean().sqrt() / expected.double().square().mean().sqrt())
