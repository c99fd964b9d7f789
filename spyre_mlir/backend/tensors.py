"""Tensor files: safetensors, written piece by piece and read one tensor at a time.

The library writes a file from a dictionary of whole tensors, which a model larger than memory does not have. The
format is its own: eight bytes that say how long the header is, the header in JSON, the tensors' bytes. The library
reads what is written here, and checks what is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from spyre_mlir.backend.whole_files.digest import Summed
from spyre_mlir.errors import ReadError
from spyre_mlir.hw.few_bits import fits, metadata, names_in, packed, unpacked

Array = NDArray[Any]
Read = TypeVar("Read")
_LENGTH_BYTES = 8
_ALIGNMENT = 8  # of the first tensor in the file, as the library aligns it
_PIECE_BYTES = 1 << 24
# The format's names of numpy's types.
_NAMES = {
    "bool": "BOOL",
    **{f"{kind}int{bits}": f"{short}{bits}" for kind, short in (("", "I"), ("u", "U")) for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"F{bits}" for bits in (16, 32, 64)},
    "complex64": "C64",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3",
    "float8_e5m2": "F8_E5M2",
}
_NARROW = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
_TYPES = {short: np.dtype(getattr(ml_dtypes, name) if name in _NARROW else name) for name, short in _NAMES.items()}


@dataclass(frozen=True)
class StreamedTensor:
    """A tensor produced while it is written.

    Attributes:
        name: its name in the file.
        dtype: its numbers.
        shape: its extents.
        pieces: makes its elements in row-major order, in arrays of any shape.
        four_bits: whether each byte is two integers.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[Array]]
    four_bits: bool = False

    @property
    def bytes(self) -> int:
        """Size in the file."""
        return prod(self.shape) * self.dtype.itemsize


def whole(name: str, values: Mapping[str, Array]) -> StreamedTensor:
    """Stream a tensor of a mapping that may compute it on request; it is requested again when written.

    Floats that the format of the file lacks are written as float32, and bytes of 4-bit numbers in pairs.
    """
    value = values[name]
    if fits(value):
        shape = (*value.shape[:-1], value.shape[-1] // 2)
        return StreamedTensor(name, np.dtype(np.uint8), shape, lambda: packed(values[name]), four_bits=True)

    def pieces() -> Iterable[Array]:
        flat = np.ascontiguousarray(values[name]).reshape(-1)
        step = max(1, _PIECE_BYTES // flat.dtype.itemsize)
        return (flat[first : first + step] for first in range(0, flat.size, step))

    kind = value.dtype if value.dtype.name in _NAMES else np.dtype(np.float32)
    return StreamedTensor(name, kind, value.shape, pieces)


@dataclass(frozen=True)
class Written:
    """A written tensor file: the byte offset of each tensor, and the digest."""

    starts: Mapping[str, int]
    digest: str


def write_tensors(path: Path, tensors: Sequence[StreamedTensor]) -> Written:
    """Write a tensor file, holding one piece of one tensor at a time.

    Raises:
        OSError: the file cannot be written.
        ValueError: the pieces of a tensor are not what its shape says.
    """
    # Wide types first keeps every tensor aligned; the names decide among equals, so that the bytes are the same always.
    ordered = sorted(tensors, key=lambda t: (-t.dtype.itemsize, t.name))
    header, offset, starts = dict[str, object](), 0, dict[str, int]()
    for tensor in ordered:
        end = offset + tensor.bytes
        kind = _NAMES[tensor.dtype.name]
        header[tensor.name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [offset, end]}
        starts[tensor.name], offset = offset, end
    if few := metadata(tensor.name for tensor in tensors if tensor.four_bits):
        header["__metadata__"] = few
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with path.open("wb") as opened:
        file = Summed(opened)
        file.write(len(text).to_bytes(_LENGTH_BYTES, "little") + text)
        for tensor in ordered:
            written = sum(file.write(_bytes(piece, tensor)) for piece in tensor.pieces())
            if written != tensor.bytes:
                raise ValueError(f"{tensor.name}: {written} bytes for a shape of {tensor.bytes}")
    return Written({name: _LENGTH_BYTES + len(text) + start for name, start in starts.items()}, file.digest)


def _bytes(piece: Array, tensor: StreamedTensor) -> memoryview:
    little = tensor.dtype.newbyteorder("<")
    return np.ascontiguousarray(piece, little).reshape(-1).view(np.uint8).data


def read_tensors(path: Path) -> dict[str, Array]:
    """Read all tensors of a file; none if there is no file. Floats that numpy lacks become float32.

    Raises:
        ReadError: the file cannot be read.
    """
    return {
        name: value.astype(np.float32) if value.dtype.name in _NARROW else np.array(value)
        for name, value in map_tensors(path).items()
    }


def tensor_names(path: Path) -> list[str]:
    """Read the tensor names of a file, checking its header against its length; no tensor is read.

    Raises:
        ReadError: the file cannot be read.
    """
    from safetensors import safe_open  # pyright: ignore[reportUnknownVariableType] # the library has no full types

    def read() -> list[str]:
        opened: Any = safe_open(os.fspath(path), framework="numpy")
        with opened as file:
            return list(file.keys())

    return _reading(path, read)


def map_tensor(path: Path, name: str) -> Array:
    """Return one tensor of a file, memory-mapped: what is not looked at is not read, and only 4-bit numbers are copied.

    Raises:
        ReadError: the file cannot be read, or has no such tensor.
    """
    return _mapped(path, name)[name]


def map_tensors(path: Path) -> dict[str, Array]:
    """Return all tensors of a file, memory-mapped; none if there is no file.

    Raises:
        ReadError: the file cannot be read.
    """
    return _mapped(path, None) if path.exists() else {}


def _mapped(path: Path, only: str | None) -> dict[str, Array]:
    names = tensor_names(path)  # the library holds the header against the file
    if only is not None and only not in names:
        raise ReadError(
            f"the tensors cannot be read: there is no {only}", where=str(path), hint="write the bundle again"
        )
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        header = json.loads(file.read(length))
    data = np.memmap(path, np.uint8, "r") if header else np.empty(0, np.uint8)
    found, few = dict[str, Array](), names_in(header.get("__metadata__"))
    for name in names if only is None else [only]:
        start, end = (_LENGTH_BYTES + length + at for at in header[name]["data_offsets"])
        if (short := header[name]["dtype"]) not in _TYPES:
            raise ReadError(f"{name} is of type {short}, which numpy lacks", where=str(path), hint="write it as F32")
        kind = _TYPES[short].newbyteorder("<")
        value = np.asarray(data[start:end]).view(kind).reshape(header[name]["shape"])
        found[name] = unpacked(value) if name in few else value
    return found


def _reading(path: Path, read: Callable[[], Read]) -> Read:
    from safetensors import SafetensorError

    try:
        return read()
    except (SafetensorError, OSError) as error:
        raise ReadError(
            f"the tensors cannot be read: {error}", where=str(path), hint="write the bundle again"
        ) from error
