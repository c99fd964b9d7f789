"""Programs with `assert` and `raise` about a tensor; pytest would write other code for it in a test file."""

from __future__ import annotations

import torch
from torch import Tensor


def plain(x: Tensor) -> Tensor:
    assert (x > 0).all()
    return x * 2


def with_text(x: Tensor) -> Tensor:
    assert x.min() > 0, "numbers must be positive"
    return x * 2


def with_text_of_values(x: Tensor) -> Tensor:
    assert x.min() > 0, f"no numbers for {len(x.shape)} dimensions"
    return x * 2


def negated(x: Tensor) -> Tensor:
    assert not (x <= 0).any(), "zeros and less"
    return x * 2


def two_at_once(x: Tensor) -> Tensor:
    assert (x < 100).all() and x.sum() > 0
    return x * 2


def of_a_number(x: Tensor) -> Tensor:
    assert x.clamp(min=0).sum(), "all are zeros"
    return x * 2


def branching(x: Tensor) -> Tensor:
    return x + 1 if (x > 0).all() else x * 2


def one_of_two(x: Tensor) -> Tensor:
    assert (x > 0).any() or x.sum() < 10
    return x * 2


def raising(x: Tensor) -> Tensor:
    if not (x > 0).all():
        raise AssertionError("numbers must be positive")
    return x * 2


def raising_for_one_of_two(x: Tensor) -> Tensor:
    kind = "numbers"
    if x.sum() > 100 or (x <= 0).any():
        raise ValueError(f"{kind} of {x.shape} must be positive")
    return x * 2


def raising_at_the_end(x: Tensor) -> Tensor:
    with torch.no_grad():
        if (x > 0).all():
            return x * 2
        raise NotImplementedError


def raising_what_is_caught(x: Tensor) -> Tensor:
    try:
        if not (x > 0).all():
            raise ValueError("numbers must be positive")
    except ValueError:
        return x * 3
    return x * 2


def raising_after_a_write(x: Tensor) -> Tensor:
    if not (x > 0).all():
        y = x.sum()
        raise ValueError(y)
    return x * 2


def of_a_constant(x: Tensor) -> Tensor:
    assert torch.tensor([True, True]).all()
    return x * 2


def negated_beside_sizes(x: Tensor) -> Tensor:
    assert not (x <= 0).any(), "numbers must be positive"
    return x[x > 1]
