"""Weights in device form: rounded to device formats, laid out in sticks, padded.

Decision: docs/decisions/0033-weights-in-two-forms.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import AnyFloat, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument
from xdsl.traits import SymbolTable

from spyre_mlir.backend.tensors import StreamedTensor
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.kernel import LaunchOp, ToDeviceOp, device_tensor
from spyre_mlir.hw import image
from spyre_mlir.hw.moves import moved
from spyre_mlir.hw.number_formats import encoding

Array = NDArray[Any]
_BITS: dict[int, np.dtype[Any]] = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16)}


@dataclass(frozen=True)
class DeviceWeight:
    """A weight to be sent to the device.

    Attributes:
        name: its name in the model.
        key: its name in the file of weights; differs where one weight is sent in two layouts.
        argument: which buffer of the launch it fills.
        transfer: the op that sends it.
    """

    name: str
    key: str
    argument: int
    transfer: ToDeviceOp

    @property
    def tensor(self) -> DeviceTensor:
        """Its format and layout."""
        return device_tensor(self.transfer.result)

    def streamed(self, values: Mapping[str, Array]) -> StreamedTensor:
        """The tensor for the file: sticks of codes, laid out while they are written."""
        tensor = self.tensor

        def pieces() -> Iterable[Array]:
            value = moved(values[self.name], self.transfer.moves)
            bits = _BITS.get(value.dtype.itemsize)
            if bits is None:
                for piece in image.pieces(value, tensor.layout, tensor.lanes, tensor.arrangement):
                    yield encoding.encode(encoding.from_host(piece, tensor.format), tensor.format)
                return
            codes = _codes(value.dtype, tensor.format)
            for piece in image.pieces(value.view(bits), tensor.layout, tensor.lanes, tensor.arrangement):
                yield codes[piece]

        kind = encoding.STORED_TYPES[tensor.format]
        return StreamedTensor(self.key, kind, (tensor.sticks, tensor.lanes), pieces)


@cache
def _codes(kind: np.dtype[Any], format_name: str) -> Array:
    """The code of every number of a type of one or two bytes, by its bits."""
    bits = _BITS[kind.itemsize]
    with np.errstate(invalid="ignore"):  # of the numbers that are none
        every = np.arange(1 << 8 * kind.itemsize, dtype=bits).view(kind).astype(np.float64)
        return encoding.encode(encoding.from_host(every, format_name), format_name)


def argument_names(main: FuncOp) -> list[str]:
    """Return the argument names of a host function; empty where one has none."""
    attributes = [] if main.arg_attrs is None else [a.data.get("aten.name") for a in main.arg_attrs]
    names = [a.data if isinstance(a, StringAttr) else "" for a in attributes]
    return names or [""] * len(main.args)


def launched_buffers(program: ModuleOp) -> list[Any]:
    """Return the buffers of the host program's launch, in order."""
    return [
        b for function in functions(program) for op in function.walk() if isinstance(op, LaunchOp) for b in op.buffers
    ]


def device_weights(program: ModuleOp, held: Collection[str]) -> list[DeviceWeight]:
    """Return the weights of a host program that have a device form.

    Numbers only: indices and truth values stay as the model has them, where their range is checked when they are sent.

    Args:
        program: the host program.
        held: names of the arguments whose values are known and stay as they are.
    """
    main = SymbolTable.lookup_symbol(program, "main")
    if not isinstance(main, FuncOp) or main.is_declaration:
        return []
    found: list[tuple[str, int, ToDeviceOp]] = []
    numbers = {buffer: number for number, buffer in reversed(list(enumerate(launched_buffers(program))))}
    for name, argument in zip(argument_names(main), main.args, strict=True):
        transfers = [use.operation for use in argument.uses]
        sent = [op for op in transfers if isinstance(op, ToDeviceOp)]
        if name not in held or not _is_floating(argument) or not _all_sent(sent, len(transfers), numbers):
            continue
        found += sorted(((name, numbers[op.result], op) for op in sent), key=lambda entry: entry[1])
    times = Counter(name for name, _, _ in found)
    return [DeviceWeight(n, n if times[n] == 1 else f"{n}@{at}", at, op) for n, at, op in found]


def _is_floating(argument: BlockArgument) -> bool:
    kind = argument.type
    return isinstance(kind, TensorType) and isinstance(kind.get_element_type(), AnyFloat)


def _all_sent(sent: Sequence[ToDeviceOp], uses: int, numbers: Mapping[Any, int]) -> bool:
    """Return whether an argument is only sent to a launch, in formats whose codes are known."""
    known = all(device_tensor(op.result).format in encoding.STORED_TYPES for op in sent)
    return bool(sent) and len(sent) == uses and known and all(op.result in numbers for op in sent)
