"""Two 4-bit integers a byte: tensors of bytes whose numbers all fit four bits take half the room in a file.

Checkpoints of 4-bit weights have a number a byte in memory. The first of two is in the low bits. The file's metadata
says `int4` under their names; to other readers of safetensors they are bytes, half as many along the last dimension.

Decision: docs/decisions/0150-integers-of-few-bits-are-words.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
LEAST, LARGEST = -8, 7
# Of smaller tensors nobody counts the bytes.
LEAST_ELEMENTS = 4096
_KIND = "int4"
_PIECE = 1 << 24


def fits(value: Array) -> bool:
    """Return whether a tensor is one of bytes that is large enough, in pairs, and has no number of more bits."""
    if value.dtype != np.int8 or value.size < LEAST_ELEMENTS or value.shape[-1] % 2:
        return False
    return all(int(part.min()) >= LEAST and int(part.max()) <= LARGEST for part in _parts(value))


def packed(value: Array) -> Iterable[Array]:
    """Make the bytes of such a tensor, in row-major order, a part at a time."""
    for part in _parts(value):
        pairs = part.view(np.uint8) & 15
        yield pairs[0::2] | pairs[1::2] << 4


def unpacked(value: Array) -> Array:
    """Return the tensor that such bytes are of."""
    pairs = np.stack((value & 15, value >> 4), axis=-1).reshape(*value.shape[:-1], -1)
    return ((pairs ^ 8).view(np.int8) - 8).astype(np.int8)


def _parts(value: Array) -> Iterable[Array]:
    flat = np.ascontiguousarray(value).reshape(-1)
    return (flat[first : first + _PIECE] for first in range(0, flat.size, _PIECE))


def metadata(names: Iterable[str]) -> dict[str, str]:
    """Return the metadata of a file in which these tensors are of four bits."""
    return dict.fromkeys(sorted(names), _KIND)


def names_in(found: Mapping[str, str] | None) -> set[str]:
    """Return the names that a file's metadata calls four bits."""
    return {name for name, kind in (found or {}).items() if kind == _KIND}


__all__ = ["fits", "metadata", "names_in", "packed", "unpacked"]
