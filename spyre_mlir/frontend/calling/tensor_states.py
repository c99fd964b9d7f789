"""States of torch tensors: whether a tensor still holds what it held."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.reference.eager import shown_as_numpy
from spyre_mlir.frontend.torch_private import is_fake, storage_identity

GLANCED_BYTES = 256 << 20  # 0.2 s of SHA-256
PAGE_BYTES = 4096
BLOCK_WORDS = 1 << 17  # 1 MiB


def storage_of(tensor: torch.Tensor) -> object:
    """Return the memory of a tensor; the object lives as long as that."""
    return tensor.untyped_storage()


def reader_of(tensor: torch.Tensor) -> Callable[[], NDArray[Any]]:
    """Return what reads a tensor later, and keeps neither the tensor nor its memory.

    There is no weak reference to the tensor, which torch could not swap any more (``model.to("spyre")``).
    """
    storage, dtype, negated = weakref.ref(tensor.untyped_storage()), tensor.dtype, tensor.is_neg()
    start, shape, strides = int(tensor.storage_offset()), tuple(tensor.shape), tensor.stride()

    def read() -> NDArray[Any]:
        if (memory := storage()) is None:
            raise InputError("the tensor is gone, so it cannot be sent", hint="keep it until the call ends")
        view = torch.empty(0, dtype=dtype).set_(memory, start, shape, strides)
        return copied_as_numpy(-view if negated else view)

    return read


def copied_as_numpy(tensor: torch.Tensor) -> NDArray[Any]:
    """Return the numbers of a tensor in other memory.

    No owner of a tensor can resize its memory once an array of numpy is on it: `fully_shard` does so between calls.
    """
    return shown_as_numpy(tensor.clone())


def place_of(tensor: torch.Tensor) -> tuple[object, ...]:
    """Return a key common to all tensors with the same elements of the same memory, while that exists."""
    layout = tensor.storage_offset(), tuple(tensor.shape), tensor.stride()
    return (storage_identity(tensor), *layout, tensor.dtype, tensor.is_conj(), tensor.is_neg())


@dataclass(frozen=True)
class TensorState:
    """Contents of a tensor at a moment.

    Attributes:
        start: address of the first element.
        version: torch's count of writes, which misses those by ``.data`` and by numpy; see `version_of`.
        digest: of the elements, which shows every write; None if nobody looked at them.
    """

    start: int
    version: int
    digest: bytes | None

    @classmethod
    def of(cls, tensor: torch.Tensor, *, contents: bool = True) -> TensorState:
        """Return the state of a tensor, with or without a look at its elements."""
        return cls(tensor.data_ptr(), version_of(tensor), _digest(tensor) if contents else None)

    def lasts(self, tensor: torch.Tensor, *, contents: bool = True) -> bool:
        """Return whether a tensor still has this state, by its elements or by torch's count."""
        if contents:
            return self.digest is not None and (self.start, self.digest) == (tensor.data_ptr(), _digest(tensor))
        return (self.start, self.version) == (tensor.data_ptr(), version_of(tensor))


def version_of(tensor: torch.Tensor) -> int:
    """Return torch's count of writes to a tensor; of one of inference mode, which has none, its digest as a number."""
    if tensor.is_inference():
        return int.from_bytes(_digest(tensor), "big")
    return tensor._version  # pyright: ignore[reportPrivateUsage]


def is_parameter(tensor: torch.Tensor) -> bool:
    """Return whether a tensor is a parameter of some module."""
    return isinstance(tensor, torch.nn.Parameter)


def fills_memory(tensor: torch.Tensor) -> bool:
    """Return whether a tensor has as many elements as its memory has room for."""
    return tensor.numel() * tensor.element_size() == tensor.untyped_storage().nbytes()


def holds(tensor: torch.Tensor, array: NDArray[Any]) -> bool:
    """Return whether a tensor has exactly these numbers, NaN counting as itself."""
    return bool(np.array_equal(shown_as_numpy(tensor), array, equal_nan=array.dtype.kind == "f"))


def assign(tensor: torch.Tensor, array: NDArray[Any]) -> None:
    """Write numbers to a tensor."""
    write(tensor, torch.tensor(array))


def write(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Write a tensor to one of the caller's; those of inference mode are written in that mode alone."""
    with torch.no_grad(), torch.inference_mode() if tensor.is_inference() else nullcontext():
        tensor.copy_(values)


def glances(tensors: Sequence[torch.Tensor], most: int = GLANCED_BYTES) -> tuple[bytes, ...]:
    """Return digests of tensors, of all elements or of equally spaced pages and sums; without elements there is none.

    Args:
        tensors: to look at.
        most: bytes of all of them to digest; of more the rest is only added up, which takes a fifth of the time and
            shows every write of one number.
    """
    there = [tensor for tensor in tensors if not is_fake(tensor) and tensor.device.type != "meta"]
    step = -(-sum(tensor.numel() * tensor.element_size() for tensor in there) // most)
    return tuple([_digest(tensor if step <= 1 else _pages(tensor, step)) for tensor in there])


def _pages(tensor: torch.Tensor, step: int) -> torch.Tensor:
    """One page of so many, the sums of all words of each block, and the last bytes."""
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
    whole = flat[: flat.numel() // PAGE_BYTES * PAGE_BYTES]
    if whole.storage_offset() % 8:
        whole = whole.clone()
    words = whole.view(torch.int64)
    blocks = [words[: (rest := words.numel() // BLOCK_WORDS * BLOCK_WORDS)].view(-1, BLOCK_WORDS), words[None, rest:]]
    sums = torch.cat([block.sum(1) for block in blocks])  # of 64 bits, and what is beyond them falls off
    return torch.cat([whole.view(-1, PAGE_BYTES)[::step].reshape(-1), sums.view(torch.uint8), flat[-PAGE_BYTES:]])


def _digest(tensor: torch.Tensor) -> bytes:
    """A cryptographic one: a shorter sum that happens to agree would be a wrong number."""
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    count = flat.numel() * flat.element_size()
    # No array of numpy, see `copied_as_numpy`.
    return sha256((ctypes.c_ubyte * count).from_address(flat.data_ptr()) if count else b"").digest()


__all__ = [
    "TensorState",
    "assign",
    "copied_as_numpy",
    "fills_memory",
    "glances",
    "holds",
    "is_parameter",
    "place_of",
    "reader_of",
    "storage_of",
    "version_of",
    "write",
]
