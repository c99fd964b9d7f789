"""Functions of torch that are replaced while the frontend traces.

Used, private: `_higher_order_ops.scan` (tensors that bodies of loops are traced with), `_functional_collectives` (what
torch calls in place of other collectives). `torch_private` has what is used as it is.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, cast

import torch
from torch.distributed import _functional_collectives


@contextmanager
def carried_apart() -> Generator[None]:
    """Trace bodies of `scan` with a tensor of its own for each argument.

    Torch hands them one tensor for what is carried from a tensor and for the tensor itself, and then takes every use in
    the body for one of the last argument.
    """
    scan = cast(Any, import_module("torch._higher_order_ops.scan"))  # the name in the package is the function
    traced = scan.reenter_make_fx

    def apart(body: Any, *options: Any, **named: Any) -> Any:
        def trace(*args: Any) -> Any:
            tensors = [a if isinstance(a, torch.Tensor) else None for a in args]
            seen = [t is not None and any(t is before for before in tensors[:n]) for n, t in enumerate(tensors)]
            return traced(body, *options, **named)(*[a.clone() if s else a for a, s in zip(args, seen, strict=True)])

        return trace

    scan.reenter_make_fx = apart
    try:
        yield
    finally:
        scan.reenter_make_fx = traced


@contextmanager
def collectives_left_alone() -> Generator[None]:
    """Let torch trace collectives that write to their arguments as calls, which a mode of functions sees."""
    others: dict[Any, Any] = cast(Any, _functional_collectives).traceable_collective_remaps
    kept = dict(others)
    others.clear()
    try:
        yield
    finally:
        others.update(kept)


__all__ = ["carried_apart", "collectives_left_alone"]
