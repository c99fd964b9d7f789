"""Samples of our own, for core overloads that float32 samples of the database do not call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
SHAPES = ((5, 5), (3, 1, 65), ())


def numbers(*shape: int, low: float = -2.0, high: float = 2.0) -> torch.Tensor:
    """Numbers that depend on the shape alone."""
    made = torch.rand(shape, generator=torch.Generator().manual_seed(1 + sum(shape)))
    return made * (high - low) + low


def whole(*shape: int, low: int = -9, high: int = 10) -> torch.Tensor:
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(1 + sum(shape)))


def truths(*shape: int) -> torch.Tensor:
    return whole(*shape) > 0


def call(*args: Any, **kwargs: Any) -> Arguments:
    return args, kwargs


def _bits(*, scalar: bool) -> list[Callable[[], Arguments]]:
    """Integers and truth values of several shapes, with a number or with another tensor."""
    if scalar:
        return [lambda s=s: call(whole(*s), 6) for s in SHAPES] + [lambda: call(truths(5, 5), True)]
    pairs = [((5, 5), (5, 5)), ((3, 1, 65), (4, 65)), ((), ())]
    both = [lambda a=a, b=b: call(whole(*a), whole(*b, low=0)) for a, b in pairs]
    return both + [lambda a=a, b=b: call(truths(*a), ~truths(*b)) for a, b in pairs]


def _with_scalar(number: float, low: float = -2.0, **kwargs: Any) -> list[Callable[[], Arguments]]:
    return [lambda s=s: call(numbers(*s, low=low), number, **kwargs) for s in SHAPES]


def _max_pool_backward(size: int, kernel: int) -> Arguments:
    x = numbers(2, 3, size, size)
    out, indices = torch.ops.aten.max_pool2d_with_indices(x, [kernel, kernel], [kernel, kernel])
    return call(numbers(*out.shape), x, [kernel, kernel], [kernel, kernel], [0, 0], [1, 1], False, indices)


def _bag(mode: int) -> Arguments:
    return call(numbers(10, 8), whole(6, low=0), torch.tensor([0, 2, 4]), False, mode)


def _convolution_backward(groups: int, bias: bool) -> Arguments:
    x, weight, grad = numbers(2, 4, 7, 7), numbers(4, 4 // groups, 3, 3), numbers(2, 4, 5, 5)
    sizes = [4] if bias else None
    return call(grad, x, weight, sizes, [1, 1], [0, 0], [1, 1], False, [0, 0], groups, [True, True, bias])


def _group_norm_backward(channels: int, groups: int) -> Arguments:
    x = numbers(2, channels, 6)
    _, mean, rstd = torch.ops.aten.native_group_norm(x, None, None, 2, channels, 6, groups, 1e-5)
    weight = numbers(channels)
    # Backwards: equal shapes give equal numbers, and a gradient that grows with the input leaves nothing but rounding.
    grad = numbers(2, channels, 6, low=-1).flip(-1)
    return call(grad, x, mean, rstd, weight, 2, channels, 6, groups, [True, True, True])


def _layer_norm_backward(*shape: int) -> Arguments:
    x, normal = numbers(*shape), [shape[-1]]
    weight, bias = numbers(shape[-1]), numbers(shape[-1], low=-1)
    _, mean, rstd = torch.ops.aten.native_layer_norm(x, normal, weight, bias, 1e-5)
    return call(numbers(*shape, low=-1), x, normal, mean, rstd, weight, bias, [True, True, True])


def _batch_norm(*shape: int) -> Arguments:
    c = shape[1]
    return call(numbers(*shape), numbers(c), numbers(c), numbers(c), numbers(c, low=0.5), 0.1, 1e-5)


OWN: Mapping[str, Sequence[Callable[[], Arguments]]] = {
    "_adaptive_avg_pool2d_backward.default": [
        lambda: call(numbers(2, 3, 2, 2), numbers(2, 3, 6, 6)),
        lambda: call(numbers(2, 3, 3, 5), numbers(2, 3, 7, 9)),
    ],
    "_embedding_bag.default": [partial(_bag, mode) for mode in (0, 1, 2)],
    "_native_batch_norm_legit_no_training.default": [
        partial(_batch_norm, *s) for s in ((2, 3, 5, 5), (4, 65), (2, 7, 9), (1, 64, 4, 4, 4))
    ],
    "adaptive_avg_pool1d.default": [
        lambda: call(numbers(2, 3, 8), [4]),
        lambda: call(numbers(2, 7), [3]),
        lambda: call(numbers(1, 65, 9), [1]),
    ],
    "avg_pool1d.default": [
        lambda: call(numbers(2, 3, 8), [2]),
        lambda: call(numbers(3, 9), [3], [2], [1], True, False),
        lambda: call(numbers(1, 65, 7), [3], [1], [1], False, True),
    ],
    "avg_pool2d_backward.default": [
        lambda: call(numbers(2, 3, 3, 3), numbers(2, 3, 6, 6), [2, 2], [2, 2], [0, 0], False, True, None),
        lambda: call(numbers(2, 3, 4, 4), numbers(2, 3, 6, 6), [3, 3], [2, 2], [1, 1], True, False, None),
    ],
    "bitwise_and.Scalar": _bits(scalar=True),
    "bitwise_not.default": [lambda s=s: call(whole(*s)) for s in SHAPES] + [lambda: call(truths(5, 5))],
    "bitwise_or.Scalar": _bits(scalar=True),
    "bitwise_or.Tensor": _bits(scalar=False),
    "bitwise_xor.Scalar": _bits(scalar=True),
    "bitwise_xor.Tensor": _bits(scalar=False),
    "col2im.default": [
        lambda: call(numbers(1, 12, 12), [4, 5], [2, 2], [1, 1], [0, 0], [1, 1]),
        lambda: call(numbers(2, 27, 4), [4, 4], [3, 3], [1, 1], [1, 1], [2, 2]),
    ],
    "convolution_backward.default": [
        partial(_convolution_backward, groups, bias) for groups in (1, 2) for bias in (True, False)
    ],
    "copy.default": [
        lambda: call(numbers(5, 5), numbers(5, 5, low=-1)),
        lambda: call(numbers(5, 65), numbers(65)),
        lambda: call(numbers(4), whole(4)),
    ],
    "div.Scalar_mode": [
        *_with_scalar(0.75, rounding_mode="floor"),
        *_with_scalar(-0.5, rounding_mode="trunc"),
        *_with_scalar(3.0, rounding_mode=None),
    ],
    "embedding_dense_backward.default": [
        lambda: call(numbers(2, 5, 8), whole(2, 5, low=0), 10, -1, False),
        lambda: call(numbers(6, 65), whole(6, low=0, high=3), 3, 1, False),
    ],
    "fmod.Scalar": [*_with_scalar(0.75), *_with_scalar(-1.5)],
    "max_pool2d_with_indices_backward.default": [lambda: _max_pool_backward(6, 2), lambda: _max_pool_backward(9, 3)],
    "native_group_norm_backward.default": [lambda: _group_norm_backward(6, 2), lambda: _group_norm_backward(4, 4)],
    "native_layer_norm_backward.default": [lambda: _layer_norm_backward(4, 64), lambda: _layer_norm_backward(2, 3, 65)],
    "pow.Scalar": [lambda s=s: call(2.0, numbers(*s)) for s in SHAPES]
    + [lambda: call(0.5, numbers(7)), lambda: call(1.0, numbers(3, 3))],
    "upsample_bilinear2d.vec": [
        lambda: call(numbers(1, 2, 4, 5), [8, 10], False, None),
        lambda: call(numbers(2, 3, 5, 5), [7, 9], True, None),
        lambda: call(numbers(1, 2, 4, 4), None, False, [2.0, 2.0]),
        lambda: call(numbers(1, 1, 6, 6), [3, 4], False, None),
    ],
    "upsample_nearest2d.vec": [
        lambda: call(numbers(1, 2, 4, 5), [8, 10], None),
        lambda: call(numbers(2, 3, 5, 5), [7, 9], None),
        lambda: call(numbers(1, 2, 4, 4), None, [2.0, 3.0]),
    ],
    "var.dim": [
        lambda: call(numbers(5, 5), [1], True, False),
        lambda: call(numbers(3, 4, 65), [-1], False, True),
        lambda: call(numbers(3, 4, 65), [0, 2], True, False),
    ],
}
