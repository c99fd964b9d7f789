"""A bundle in memory: what its files would say, without writing and reading them.

Decision: docs/decisions/0001-what-a-call-runs.md
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from spyre_mlir.backend.provenance import Levels, launched_tensors
from spyre_mlir.backend.split import launches
from spyre_mlir.backend.weights import DeviceWeight, device_weights
from spyre_mlir.dialects.superdsc.codec.described import described
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor

Array = NDArray[Any]


@dataclass(frozen=True)
class HeldBundle:
    """A program at the superdsc level with its weights, as `backend.stored.StoredBundle` would read them from disk.

    Attributes:
        module: the host program, the bundle functions and the SuperDSCs; read, never changed.
        levels: the same program on the levels above, which say what tensor each operand of a launch is.
        values: weights and constants by name.
        changing: names of tensors that calls change; they have no device form.
    """

    module: ModuleOp
    levels: Levels
    values: Mapping[str, Array]
    changing: Collection[str] = ()
    _described: dict[str, Descriptor] = field(default_factory=dict[str, Descriptor], repr=False)

    @property
    def program(self) -> ModuleOp:
        """The module with the host program."""
        return self.module

    @property
    def bundle(self) -> ModuleOp:
        """The module with the bundle functions."""
        return self.module

    @cached_property
    def tensors(self) -> Mapping[Operation, tuple[str, ...]]:
        """Per launch, which tensor each of its operands is; a launch for which that is not known is not there."""
        ordered = launches(self.module)
        named = zip(ordered, launched_tensors(len(ordered), self.levels), strict=False)
        return {op: tuple(name for name in names if name) for op, names in named if None not in names}

    def descriptor(self, filename: str) -> Descriptor:
        """Return the descriptor of a SuperDSC; every call with one name returns the same object.

        Raises:
            KeyError: there is no such SuperDSC.
            UnsupportedError: it uses a feature without a known meaning.
        """
        if filename not in self._described:
            self._described[filename] = described(self._files[filename])
        return self._described[filename]

    def weights(self) -> dict[int, Callable[[], Array]]:
        """Return the device weights as [sticks, lanes]: per launch buffer, what makes its codes."""
        return {weight.argument: partial(_codes, weight, self.values) for weight in self._weights}

    def weight_names(self) -> set[str]:
        """Names of the weights that have a device form."""
        return {weight.name for weight in self._weights}

    @cached_property
    def _weights(self) -> list[DeviceWeight]:
        held = [name for name in self.values if name not in self.changing]
        return device_weights(self.module, held) if held else []

    @cached_property
    def _files(self) -> dict[str, SdscOp]:
        return {op.file_name: op for op in self.module.ops if isinstance(op, SdscOp)}


def _codes(weight: DeviceWeight, values: Mapping[str, Array]) -> Array:
    """The codes that the file of weights would have."""
    streamed = weight.streamed(values)
    codes = np.empty(streamed.shape, streamed.dtype)
    flat, at = codes.reshape(-1), 0
    for piece in streamed.pieces():
        flat[at : at + piece.size] = piece.reshape(-1)
        at += piece.size
    return codes
