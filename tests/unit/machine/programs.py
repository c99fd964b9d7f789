"""What the machine's tests share: descriptors from files, and memory laid out by the oracle."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt

from spyre_mlir.dialects.superdsc.model.descriptor import Constant, Descriptor, Dim, OpClass, Operand
from spyre_mlir.machine.memory.exact import ExactMemory, Memory
from tests.oracles.superdsc_decoder import Decoder
from tests.paths import DATA

Floats = npt.NDArray[np.float64]
STICK = 128


def load(stem: str) -> dict[str, Any]:
    """Parse one of the copied files."""
    (path,) = DATA.glob(f"superdsc_*/{stem}.json")
    return json.loads(path.read_text())


def dsc_of(obj: dict[str, Any]) -> dict[str, Any]:
    """The descriptor inside a file."""
    top = next(iter(obj.values()))
    return next(iter(top["dscs_"][0].values()))


def op_class_of(decoder: Decoder) -> OpClass:
    """Family of an op, told from its name."""
    name = decoder.op_func
    if name.startswith("batchmatmul"):
        return OpClass.MATMUL
    if name.startswith("ReStickify"):
        return OpClass.RESTICKIFY
    reductions = ("sum", "mean", "max", "min", "prod", "absmax")
    return OpClass.REDUCTION if name.removesuffix("nonstick") in reductions else OpClass.POINTWISE


def descriptor_of(obj: dict[str, Any], symbols: dict[int, int] | None = None) -> Descriptor:
    """A descriptor that says what the file says, read by the oracle."""
    decoder = Decoder(obj, symbols)
    dsc = dsc_of(obj)
    order = list(decoder.splits)
    dims = tuple(Dim(d, decoder.sizes[d], decoder.splits[d], decoder.valid.get(d)) for d in order)
    operands: list[Operand] = []
    for op in decoder.operands:
        base = {d: decoder.sizes[d] // (decoder.splits[d] if op.component == "lx" else 1) for d in op.dims}
        operands.append(
            Operand(
                order=op.dims,
                extents=tuple(base[d] + op.gap(d, 0) for d in op.dims),
                stick=None if op.sparse else op.stick,
                format=op.data_format,
                start=tuple(str(op.starts[c]) for c in decoder.cores),
                component=op.component,
            )
        )
    formats = {} if isinstance(dsc["constantInfo_"], str) else dsc["constantInfo_"].values()
    constants = tuple(Constant(c["name_"], c["dataFormat_"], decoder.constants[c["name_"]]) for c in formats)
    return Descriptor(
        index=0,
        op_func=decoder.op_func.removesuffix("nonstick"),
        unit=dsc["computeOp_"][0]["exUnit"],
        op_class=op_class_of(decoder),
        dims=dims,
        operands=tuple(operands),
        constants=constants,
        mask_constant=dsc["maskingConstId_"],
        slices=tuple(decoder.slices[c] for c in decoder.cores),
    )


def everywhere(memory: Memory, decoder: Decoder, operand: int) -> tuple[dict[str, Any], Any]:
    """The oracle's coordinates and card-wide addresses of one operand, all cores in one list."""
    parts = [decoder.addresses(operand, core) for core in decoder.cores]
    lx = decoder.operands[operand].component == "lx"
    shifts = [memory.scratchpad_address(core, 0) if lx else 0 for core in decoder.cores]
    coords = {d: np.concatenate([c[d] for c, _ in parts]) for d in parts[0][0]}
    return coords, np.concatenate([a + s for (_, a), s in zip(parts, shifts, strict=True)])


def memory_for(decoder: Decoder, memory: Memory | None = None) -> Memory:
    """Memory (exact if none is given) with one region per HBM operand, as large as the oracle says it is.

    Operands may share one.
    """
    memory = ExactMemory() if memory is None else memory
    ranges: list[tuple[int, int]] = []
    for op in decoder.operands:
        if op.component == "lx":
            memory.add_scratchpads()
            continue
        _, addresses = everywhere(memory, decoder, op.index)
        low, high = int(addresses.min()), int(addresses.max()) + op.word_bytes
        ranges.append((low // STICK * STICK, -(-high // STICK) * STICK))
    for at, (low, high) in enumerate(sorted(set(ranges))):
        memory.add_region(f"argument {at}", low, high - low)
    return memory


def put(memory: Memory, decoder: Decoder, operand: int, values: Floats) -> None:
    """Store a logical array (dims in the order of `Decoder.sizes` that the operand has) at the oracle's addresses."""
    coords, addresses = everywhere(memory, decoder, operand)
    axes = [d for d in decoder.sizes if d in coords]
    inside = np.ones(addresses.shape, dtype=bool)
    for axis, d in enumerate(axes):
        inside &= coords[d] < values.shape[axis]
    index = tuple(coords[d][inside] for d in axes)
    memory.store(addresses[inside], values[index], decoder.operands[operand].data_format)


def get(memory: Memory, decoder: Decoder, operand: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Load a logical array from the oracle's addresses, and which elements were written."""
    coords, addresses = everywhere(memory, decoder, operand)
    axes = [d for d in decoder.sizes if d in coords]
    shape = [decoder.sizes[d] for d in axes]
    values, known = memory.load(addresses, decoder.operands[operand].data_format)
    result, written = np.full(shape, np.nan), np.zeros(shape, dtype=np.bool_)
    index = tuple(coords[d] for d in axes) or (...,)
    result[index], written[index] = (values, known) if axes else (values[0], known.all())
    return result, written
