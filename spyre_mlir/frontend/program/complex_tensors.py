"""Complex tensors at the border of a program, which has real and imaginary parts in a last dimension of two.

Decision: docs/decisions/0144-complex-numbers-are-pairs.md
"""

from __future__ import annotations

import torch

_TYPES = {torch.float16: torch.complex32, torch.float32: torch.complex64, torch.float64: torch.complex128}


def complex_type(real: torch.dtype) -> torch.dtype:
    """Return the complex dtype whose parts have a real one."""
    return _TYPES[real]


def as_real(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor as programs have it: of a complex one its parts, in the same memory unless it is conjugated."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def as_complex(tensor: torch.Tensor) -> torch.Tensor:
    """Return the complex tensor of parts in a last dimension of two, in the same memory if it can lie there."""
    if not tensor.numel():  # whose strides may be any
        return torch.empty(tensor.shape[:-1], dtype=complex_type(tensor.dtype))
    *steps, last = tensor.stride()
    if last != 1 or any(step % 2 for step in steps):
        shape = tensor.shape[:-1]
        return torch.view_as_complex(tensor.reshape(shape.numel(), 2).contiguous()).view(shape)
    return torch.view_as_complex(tensor)
