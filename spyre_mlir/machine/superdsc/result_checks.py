"""Messages about an operation's results: the number of overflows, and the origin of NaN."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import numpy as np

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.hw.arrangement import widened
from spyre_mlir.hw.formats import DL16, FORMATS, FP32
from spyre_mlir.machine.eager_rounding import MOST_INTEGER
from spyre_mlir.machine.faults import FaultKind, Place, fault
from spyre_mlir.machine.hardware_functions import Meaning, Reduction
from spyre_mlir.machine.memory.device_numerics import DeviceMemory
from spyre_mlir.machine.memory.exact import Bools, Memory
from spyre_mlir.machine.superdsc.compute import fetch
from spyre_mlir.machine.superdsc.work import Tile
from spyre_mlir.ops.hardware_functions import function_of


@contextmanager
def counted(view: Descriptor, memory: Memory) -> Generator[None]:
    """Add internally rounded values to the log's count of overflows, and note the settings that matter.

    Args:
        view: the operation.
        memory: where it computes.

    Raises:
        MachineFault: ``int32-overflow``.
    """
    floats, integers, memory.tally.largest = memory.tally.overflows, memory.tally.integers, 0.0
    yield
    if isinstance(memory, DeviceMemory):
        for setting in open_settings(view):
            memory.log.depends.setdefault(setting, set()).add(_name(view))
    note_counts(view, memory, floats, integers)


def note_counts(view: Descriptor, memory: Memory, floats: int, integers: int) -> None:
    """Note numbers that an operation rounded to others.

    Args:
        view: the operation.
        memory: where it computed.
        floats: how many overflows of floats there were before.
        integers: and of integers.

    Raises:
        MachineFault: ``int32-overflow``.
    """
    name, log, output = _name(view), memory.log, f"Tensor{len(view.operands) - 1}"
    if (met := memory.tally.overflows - floats) > 0:
        log.overflow(name, output, met, memory.tally.largest)
        if isinstance(memory, DeviceMemory):
            log.depends.setdefault("overflow", set()).add(name)
    if (met := memory.tally.integers - integers) > 0:
        message = f"{met} results are beyond the integers of {view.output.format}"
        place = Place(op=name, tensor=output)
        log.meet(fault(FaultKind.INT32_OVERFLOW, message, place, hint="bound the operands; a card keeps the low bits"))


def _name(view: Descriptor) -> str:
    return f"{view.index}:{view.op_func_name}"


def open_settings(view: Descriptor) -> Generator[str]:
    """Return the settings of the options that results depend on, whatever the numbers are."""
    function = function_of(view.op_func_name)
    if function is not None and function.exact:
        return
    yield "arithmetic"
    if any(dim.split > 1 and dim.label not in view.output.order for dim in view.dims):
        yield "partial_sums"


def require_integers(view: Descriptor, meaning: Meaning, tile: Tile, memory: Memory) -> None:
    """Refuse integers outside the exact range of a float format, if the operation computes integers.

    A sum is looked at without signs, as no order of adding up is public.

    Raises:
        MachineFault: ``int32-overflow``.
    """
    if view.index not in memory.integer_kernels or not FORMATS[view.output.format].floating:
        return
    if memory.element is not None and not isinstance(memory, DeviceMemory):
        return  # in exact numerics they are integers of their type
    last, places = len(tile.accesses) - 1, [n for n, d in enumerate(view.dims) if d.label not in view.output.order]
    values = np.abs(tile.frame.joined(fetch(tile, last, memory).values))
    if isinstance(meaning, Reduction) and meaning.fold is np.add:
        parts = np.abs(tile.frame.joined(fetch(tile, 0, memory).values).astype(np.float64))
        values = np.maximum(values, parts.sum(axis=tuple(places), keepdims=True))
    most = FORMATS[view.output.format].integers[1] if isinstance(memory, DeviceMemory) else MOST_INTEGER
    wrong = ~(values <= most) & _no_padding(view, tile, memory)  # NaN is none
    if not wrong.any():
        return
    place = tile.accesses[last].place_at([int(i) for i in np.argwhere(wrong)[0]])
    message = f"{int(wrong.sum())} integers are beyond {most:,}, the largest exact one"
    hint = "integers are float32 numbers on the device; split them, subtract an offset, or look for a division by 0"
    memory.log.meet(fault(FaultKind.INT32_OVERFLOW, message, place, hint=hint))


def _no_padding(view: Descriptor, tile: Tile, memory: Memory) -> Bools:
    """Return which elements of an operation's result are meaningful, of size one along dims without padding."""
    valid, sizes = memory.integer_kernels[view.index], [1] * len(view.dims)
    if view.output.stick not in view.output.order:
        return np.ones(sizes, np.bool_)
    place = [dim.label for dim in view.dims].index(view.output.stick)
    extent = tile.accesses[-1].shape[place]
    at = np.arange(extent) + tile.origin[place]
    if valid > 0 and view.output.format == FP32.name:
        at = widened(at, 0, DL16.elements_per_stick())
    sizes[place] = extent
    return (at < max(valid, 1)).reshape(sizes)  # a sparse stick has one element


def require_numbers(tiles: Sequence[Tile], memory: Memory) -> None:
    """Refuse a result that is infinite or NaN where no operand is, if the run asks for it.

    Args:
        tiles: all that the operation did; several may share a result.
        memory: where it computed.

    Raises:
        MachineFault: ``nan-born``.
    """
    if not memory.nan_is_a_fault:
        return
    last = len(tiles[0].accesses) - 1
    born = [(tile, ~np.isfinite(tile.frame.joined(fetch(tile, last, memory).values))) for tile in tiles]
    born = [(tile, wrong) for tile, wrong in born if wrong.any()]
    if not born or not all(np.isfinite(fetch(t, n, memory).values).all() for t in tiles for n in range(last)):
        return
    (tile, wrong) = born[0]
    message = f"{int(wrong.sum())} results are infinite or NaN, and no operand is"
    place = tile.accesses[last].place_at([int(i) for i in np.argwhere(wrong)[0]])
    memory.log.meet(fault(FaultKind.NAN_BORN, message, place, hint="look for a division by zero, or a logarithm"))
