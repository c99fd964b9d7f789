"""Descriptors by hand, through JSON and text and back, and their elements in memory by the published formula."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spyre_mlir.dialects.superdsc.check.checker import check_value
from spyre_mlir.dialects.superdsc.check.rule import Severity
from spyre_mlir.dialects.superdsc.codec.build import build
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_to_json
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.dialects.superdsc.model.descriptor import (
    Descriptor,
    Dim,
    OpClass,
    Operand,
    Version,
    start_offsets,
)
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.superdsc.run import execute
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

DL16, FP32, INT32 = "SEN169_FP16", "IEEE_FP32", "IEEE_INT32"
Array = npt.NDArray[np.float64]
RANDOM = np.random.default_rng(5)


@dataclass(frozen=True)
class Shape:
    """An operand without addresses: dims inner to outer, their extents, the stick dim."""

    order: tuple[str, ...]
    extents: tuple[int, ...]
    stick: str | None
    format: str = DL16

    def placed(self, base: int, dims: tuple[Dim, ...], kind: OpClass) -> Operand:
        bare = Operand(self.order, self.extents, self.stick, self.format, ())
        return replace(bare, start=tuple(str(base + offset) for offset in start_offsets(dims, bare, kind)))


def descriptor(func: str, kind: OpClass, dims: tuple[Dim, ...], *shapes: Shape, **more: object) -> Descriptor:
    """Operands one after the other in memory, 1 MiB apart."""
    operands = tuple(shape.placed(n << 20, dims, kind) for n, shape in enumerate(shapes))
    unit = "pt" if kind is OpClass.CONVOLUTION else "sfp"
    return Descriptor(0, func, unit, kind, dims, operands, **more)  # pyright: ignore


def addresses(operand: Operand) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Byte address of every element, axes outer to inner, by the published formula."""
    labels = list(reversed(operand.order))
    grids = np.indices([dict(zip(operand.order, operand.extents, strict=True))[label] for label in labels])
    lanes, width = operand.elements_per_stick, 128 // operand.elements_per_stick
    stride, total = 1, np.zeros(grids.shape[1:], dtype=np.int64)
    for label, extent in zip(operand.order, operand.extents, strict=True):
        index = grids[labels.index(label)]
        in_stick = label == operand.stick
        total += 128 * stride * (index // lanes if in_stick else index) + (width * (index % lanes) if in_stick else 0)
        stride *= -(-extent // lanes) if in_stick else extent
    return labels, int(operand.start[0]) + total


def put(memory: ExactMemory, operand: Operand, values: Array, labels: str) -> None:
    """Store an array whose axes are `labels`, words apart by blanks."""
    own, where = addresses(operand)
    moved = np.transpose(values, [labels.split().index(label) for label in own])
    inside = tuple(slice(0, n) for n in moved.shape)
    memory.store(where[inside], moved, operand.format)


def get(memory: ExactMemory, operand: Operand, labels: str) -> Array:
    own, where = addresses(operand)
    values, _ = memory.load(where, operand.format)
    return np.transpose(values, [own.index(label) for label in labels.split()])


def stored(view: Descriptor, *, sound: bool = True) -> Descriptor:
    """What the file of a descriptor says; it must be the same, survive as text, and if it is sound break no rule."""
    op = build(view, Version.TSNEW)
    described = describe(op)
    assert replace(described, op_format=None) == view
    wrong = [f for f in check_value(sdsc_to_json(op), "file") if f.severity is Severity.ERROR]
    assert bool(wrong) is not sound, wrong
    (read,) = parse_module(str(op), make_context()).ops
    assert isinstance(read, SdscOp)
    assert json.dumps(sdsc_to_json(read)) == json.dumps(sdsc_to_json(op))
    return described


def run(
    view: Descriptor, *inputs: tuple[Array, str], symbols: Mapping[int, int] | None = None, sound: bool = True
) -> ExactMemory:
    """Write the file, read it back, and run what was read on memory with the inputs."""
    described = stored(view, sound=sound)
    memory = ExactMemory()
    memory.add_region("all", 0, len(view.operands) << 20)
    for operand, (values, labels) in zip(view.operands, inputs, strict=False):
        put(memory, operand, values, labels)
    execute(described, memory, symbols)
    return memory


def close(got: Array, wanted: object) -> None:
    np.testing.assert_allclose(got, np.asarray(wanted, dtype=np.float64), rtol=1e-12, atol=1e-12)


def dsc_of(view: Descriptor) -> dict[str, object] | object:
    ((_, top),) = sdsc_to_json(build(view, Version.TSNEW)).items()
    ((_, dsc),) = top["dscs_"][0].items()  # pyright: ignore
    return dsc  # pyright: ignore
