"""Makers of inputs for either side of a threshold: each gives tensors for the element type of their floats."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

Made = Callable[[torch.dtype], tuple[Tensor, ...]]


def drawn(*shapes: tuple[int, ...], low: float = -2.0, high: float = 2.0) -> Made:
    """Random numbers, each exact in the element type asked for."""

    def make(dtype: torch.dtype) -> tuple[Tensor, ...]:
        random = torch.Generator().manual_seed(5)
        return tuple((torch.rand(s, generator=random) * (high - low) + low).to(dtype) for s in shapes)

    return make


def distinct(*shape: int) -> Made:
    """Numbers of which no two in a row are equal, in any of the element types: bfloat16 has 4,096 of these."""

    def make(dtype: torch.dtype) -> tuple[Tensor, ...]:
        random, rows = torch.Generator().manual_seed(6), torch.Size(shape[:-1]).numel()
        codes = torch.arange(127 - 8 << 7, 127 + 8 << 7, dtype=torch.int16)  # of bfloat16: 2^-8 to 2^8
        numbers = torch.cat([codes.view(torch.bfloat16), -codes.view(torch.bfloat16)])
        order = [torch.randperm(len(numbers), generator=random)[: shape[-1]] for _ in range(rows)]
        return (numbers[torch.stack(order)].reshape(shape).to(dtype),)

    return make


def whole(*shapes: tuple[int, ...], dtype: torch.dtype = torch.int64, high: int = 50) -> Made:
    """Whole numbers from 0, whatever floats are asked for."""

    def make(_: torch.dtype) -> tuple[Tensor, ...]:
        random = torch.Generator().manual_seed(8)
        return tuple(torch.randint(0, high, s, generator=random).to(dtype) for s in shapes)

    return make


def also(floats: Made, integers: Made) -> Made:
    """Both, floats first."""
    return lambda dtype: floats(dtype) + integers(dtype)


def pooled(*shape: int) -> Made:
    """An image pooled by twos, and where its elements stood."""

    def make(dtype: torch.dtype) -> tuple[Tensor, ...]:
        return functional.max_pool2d(drawn(shape)(dtype)[0], 2, return_indices=True)  # type: ignore[return-value]

    return make


def recurrent(steps: int, layers: int = 1) -> Made:
    return drawn((steps, 2, 4), (layers, 2, 4), (4, 4), (4, 4))
