"""Memory that arguments share: a program takes each argument for a tensor of its own, so what it writes must be one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import torch

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.torch_private import storage_identity

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
OWN = "give tensors of their own, e.g. x.clone()"


def check_apart(written: Iterable[str], given: Mapping[str, torch.Tensor], owned: Mapping[str, torch.Tensor]) -> None:
    """Checks that nothing which a call reads or writes is changed by writing something else.

    Args:
        written: names of the inputs and buffers that the program writes.
        given: the inputs of the call, by name.
        owned: parameters, buffers and constants of the program, by name; apart from one another.

    Raises:
        InputError: a written tensor shares memory with another one, or with itself, as an expanded one does.
    """
    for name in written:
        if name not in given and name not in owned:
            continue  # a program without weights
        target, others = (given[name], {**owned, **given}) if name in given else (owned[name], given)
        if target.numel() and any(s == 0 and e > 1 for s, e in zip(target.stride(), target.shape, strict=True)):
            raise InputError(f"the model writes to '{name}', of which many elements are one place in memory", hint=OWN)
        for other, tensor in others.items():
            if other != name and _overlap(target, tensor):
                raise InputError(f"the model writes to '{name}', which shares memory with '{other}'", hint=OWN)


def _overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    if storage_identity(a) != storage_identity(b):
        return False
    first, second = (t.detach().view(_BITS[t.itemsize]).numpy() for t in (a, b))
    return bool(np.shares_memory(first, second))
