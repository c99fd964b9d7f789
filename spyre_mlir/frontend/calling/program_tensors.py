"""The tensors that belong to a program, in the form the rest of the package takes."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import ml_dtypes
import torch
from numpy.typing import NDArray

from spyre_mlir.errors import InputError, frames_of_ours
from spyre_mlir.frontend.calling.model_state import ModelChangedWarning
from spyre_mlir.frontend.calling.tensor_states import glances, version_of
from spyre_mlir.frontend.program.complex_tensors import as_real
from spyre_mlir.frontend.program.program import Program
from spyre_mlir.frontend.reference.eager import shown_as_numpy, to_numpy
from spyre_mlir.frontend.torch_private import is_real
from spyre_mlir.sizes import counted

Array = NDArray[Any]
_BITS = {1: torch.uint8, 2: torch.int16}
_NARROW: dict[torch.dtype, type[Any]] = {
    torch.bfloat16: ml_dtypes.bfloat16,
    torch.float8_e4m3fn: ml_dtypes.float8_e4m3fn,
    torch.float8_e4m3fnuz: ml_dtypes.float8_e4m3fnuz,
    torch.float8_e5m2: ml_dtypes.float8_e5m2,
    torch.float8_e5m2fnuz: ml_dtypes.float8_e5m2fnuz,
    torch.float8_e8m0fnu: ml_dtypes.float8_e8m0fnu,
}


class HostValues(Mapping[str, Array]):
    """The model's own tensors as numpy arrays, created on request.

    So weights are in memory once, and what the model or another program made of it writes to a buffer is seen.

    Attributes:
        digests: tensors that calls do not write, each with its digest when `modified` was last asked.
    """

    def __init__(self, program: Program) -> None:
        """Copies nothing."""
        self._program = program
        self._tensors = program.values
        self._versions: tuple[object, ...] | None = None
        self._told = set[str]()
        self.digests: list[tuple[torch.Tensor, bytes]] = []

    def __getitem__(self, name: str) -> Array:
        """The tensor as it is now."""
        return to_numpy(self._tensors[name])

    def __iter__(self) -> Iterator[str]:
        """Names in the order of the program."""
        return iter(self._tensors)

    def __len__(self) -> int:
        """Return their number."""
        return len(self._tensors)

    def __contains__(self, name: object) -> bool:
        """Return whether there is a tensor of this name; makes none."""
        return name in self._tensors

    def shared(self) -> Mapping[str, Array]:
        """The same tensors in the memory they have, for reading: nothing is copied before it is asked for.

        bfloat16 and 8-bit floats stay what they are, as types of `ml_dtypes`.
        """
        return _Shared(self._tensors)

    def tensor(self, name: str) -> torch.Tensor:
        """Return the tensor itself."""
        return self._tensors[name]

    def modified(self) -> list[torch.Tensor] | None:
        """Return the tensors that calls do not write, if one has been modified since the last time; else None.

        Torch's count misses writes by ``.data`` and numpy, so the elements count, too, unless they lie in files; see
        `glances`. The list is empty the first time.
        """
        written = {*self._program.mutations.values(), *self._program.recipes}
        read = [self._tensors[name] for name in self._tensors if name not in written]
        read += self._program.read_ahead.values()
        there = [] if self._program.stored else [tensor for tensor in read if is_real(tensor)]
        digests = glances(there)
        self.digests = list(zip(there, digests, strict=True))
        versions = (*map(version_of, read), *digests)
        before, self._versions = self._versions, versions
        if before == versions:
            return None
        return [] if before is None else read

    def replaced(self) -> str | None:
        """Return the first parameter or buffer that the model has replaced by another tensor, None if there is none."""
        model = self._program.reference
        if not isinstance(model, torch.nn.Module):
            return None
        now = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
        held = {name: self._tensors[name] for name in self._tensors if name in now} | dict(self._program.read_ahead)
        held |= {name: held[first] for name, first in self._program.ties.items() if first in held}
        return next((name for name, t in held.items() if name in now and not _same_memory(t, now[name])), None)

    def changed(self) -> tuple[str, ...]:
        """Say what else of the model is no longer what the program was made of, as its modes and hooks."""
        return () if self._program.changes is None else self._program.changes()

    def check(self, held: Collection[str], *, hint: str) -> None:
        """Check that a call can have the model's own tensors.

        Args:
            held: names of those that it has from elsewhere.
            hint: where the rest would come from.

        Raises:
            InputError: the model has replaced one, or some have no values.
        """
        if (name := self.replaced()) is not None:
            raise InputError(
                f"the model has another tensor '{name}' than the program was made with",
                hint="compile the model again after .half(), .to(), load_state_dict(assign=True) or another new tensor",
            )
        self._tell_changes()
        own = (a.name for a in self._program.arguments if a.kind != "input")
        missing = [name for name in own if name not in self and name not in held]
        if missing:
            text = f"the program has no values for {', '.join(missing[:3])}{' …' if len(missing) > 3 else ''}"
            raise InputError(text, hint=hint)

    def _tell_changes(self) -> None:
        """Warn of each change of the model once."""
        new = [text for text in self.changed() if text not in self._told]
        self._told.update(new)
        if new:
            more = f", and {counted(len(new) - 1, 'other change')}" if len(new) > 1 else ""
            warnings.warn(
                f"the model has changed since compilation, and the program computes what it was: {new[0]}{more}\n"
                "  try: compile the model again, or compile(model) without inputs, which does so at calls",
                ModelChangedWarning,
                stacklevel=frames_of_ours(),
            )


class _Shared(Mapping[str, Array]):
    """Tensors as arrays on the same memory."""

    def __init__(self, tensors: Mapping[str, torch.Tensor]) -> None:
        self._tensors = tensors

    def __getitem__(self, name: str) -> Array:
        tensor = self._tensors[name]
        narrow = _NARROW.get(tensor.dtype)
        if narrow is None:
            return shown_as_numpy(tensor)
        return tensor.detach().cpu().view(_BITS[tensor.dtype.itemsize]).numpy().view(narrow)

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def __contains__(self, name: object) -> bool:
        return name in self._tensors


def _same_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    b = as_real(b)
    return a.dtype is b.dtype and a.shape == b.shape and a.device == b.device and a.data_ptr() == b.data_ptr()
