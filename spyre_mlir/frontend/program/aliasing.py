"""Memory shared by arguments: a program treats each argument as separate, so written ones must be separate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spyre_mlir.errors import InputError

_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
OWN = "give tensors of their own, e.g. x.clone()"


def check_apart(written: Iterable[str], given: Mapping[str, torch.Tensor], owned: Mapping[str, torch.Tensor]) -> None:
    """Check that no tensor that a call reads or writes is changed by a write to another one.

    Args:
        written: names of the inputs and buffers that the program writes.
        given: the inputs of the call, by name.
        owned: parameters, buffers and constants of the program, by name; apart from one another.

    Raises:
        InputError: a written tensor shares memory with another one, or with itself, as an expanded one does.
    """
    everything = {**owned, **given}
    targets = [name for name in written if name in everything]  # a program without weights lacks its buffers
    places = {name: _places(tensor) for name, tensor in everything.items()} if targets else {}
    for name in targets:
        if _overlaps_itself(places[name]):
            raise InputError(f"the model writes to '{name}', of which many elements are one place in memory", hint=OWN)
        for other in places if name in given else given:
            if other != name and np.shares_memory(places[name], places[other]):
                raise InputError(f"the model writes to '{name}', which shares memory with '{other}'", hint=OWN)


def _overlaps_itself(places: NDArray[Any]) -> bool:
    """Return whether two elements of an array are one place, as in an expanded tensor or in windows that overlap."""
    steps = sorted((s, e) for s, e in zip(places.strides, places.shape, strict=True) if e > 1)
    reached = 0
    for step, extent in steps if places.size else ():
        if step <= reached:
            # Strides alone do not decide it: 2 and 3 reach each of some places once.
            offsets = reduce(np.add, np.ix_(*(np.arange(e) * s for s, e in steps)))
            return np.unique(offsets).size < offsets.size
        reached += step * (extent - 1)
    return False


def _places(tensor: torch.Tensor) -> NDArray[Any]:
    """The memory of a tensor as an array that reaches the same places."""
    if tensor.is_neg():  # as the imaginary part of a conjugate, whose bits have no view
        start, held = int(tensor.storage_offset()), tensor.untyped_storage()
        tensor = torch.empty(0, dtype=tensor.dtype).set_(held, start, tensor.size(), tensor.stride())
    return tensor.detach().view(_BITS[tensor.itemsize]).numpy()
