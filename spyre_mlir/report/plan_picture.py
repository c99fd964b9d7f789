"""The plan of a program as rows of a picture: loops, slices per core, layouts, memories, and what was rearranged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from rich.console import JustifyMethod
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue

from spyre_mlir.dialects.ir.modules import ops_in
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.dialects.spyre.kernel_loop import uses_with_tiles
from spyre_mlir.dialects.spyre.static_loop import loop_bounds
from spyre_mlir.dialects.superdsc import SdscOp
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.ops.hardware_functions import COPY
from spyre_mlir.report.explanation.planned_program import NamedKernel, named_kernels
from spyre_mlir.report.tables import listing
from spyre_mlir.text.notebook import ShownAsText
from spyre_mlir.text.render import value_names
from spyre_mlir.transforms.utils.hints import has_tile

_SHOWN_READERS = 2
_COLUMNS: Mapping[str, JustifyMethod] = {
    "file": "left",
    "kernel": "left",
    "loops": "left",
    "cores": "right",
    "reads": "left",
    "writes": "left",
    "rearranges": "left",
}
_SPARE = ("rearranges", "reads", "file", "cores")  # where a terminal has no room
_FOLDED = {"loops": 9, "reads": 9, "writes": 9}


@dataclass(frozen=True)
class PlannedAxis:
    """A dimension of a tensor, or a loop of a kernel.

    Attributes:
        text: its extent, or ``d1 128/32``: name, extent and slices.
        marked: whether it lies in the sticks, or is divided over cores.
    """

    text: str
    marked: bool


@dataclass(frozen=True)
class PlannedOperand:
    """An operand of a kernel.

    Attributes:
        value: its name in the text of the kernel level.
        axes: its dimensions as they lie in memory, outermost first.
        memory: `hbm` or `lx`.
        about: format, address and bytes on the device.
    """

    value: str
    axes: tuple[PlannedAxis, ...]
    memory: str
    about: str


@dataclass(frozen=True)
class PlannedRow:
    """A kernel, a loop around kernels, or a call of a function.

    Attributes:
        depth: loops around it.
        name: of the kernel's file, or empty.
        what: the hardware function, the trips of the loop, or the function called.
        loops: of the kernel, outermost first.
        cores: in use; 0 for anything but a kernel.
        reads: what the kernel reads.
        writes: what it writes; empty for anything but a kernel.
        rearranged: what the kernel is for, if it computes nothing.
    """

    depth: int
    name: str
    what: str
    loops: tuple[PlannedAxis, ...] = ()
    cores: int = 0
    reads: tuple[PlannedOperand, ...] = ()
    writes: tuple[PlannedOperand, ...] = ()
    rearranged: str = ""


@dataclass(frozen=True)
class PlannedFunction:
    """A function of the program.

    Attributes:
        name: in the text.
        calls: how often the program calls it.
        rows: in execution order.
    """

    name: str
    calls: int
    rows: tuple[PlannedRow, ...]

    @property
    def kernels(self) -> int:
        """Number of kernels."""
        return sum(bool(row.cores) for row in self.rows)

    @property
    def title(self) -> str:
        """Name and counts."""
        return f"{self.name}, kernels: {self.kernels}" + (f", calls: {self.calls}" if self.calls else "")


@dataclass(frozen=True, repr=False)
class PlanPicture(ShownAsText):
    """The plan of a program; printed as tables, in which a star marks the dimension in the sticks.

    Attributes:
        functions: the main one first.
    """

    functions: tuple[PlannedFunction, ...]

    def __str__(self) -> str:
        """A table per function."""
        if not self.functions:
            return "no kernels: the host does all"
        return "\n\n".join(
            listing(one.title, _COLUMNS, map(_cells, one.rows), _SPARE, folded=_FOLDED) for one in self.functions
        )


def _cells(row: PlannedRow) -> tuple[str, ...]:
    loops = ", ".join(axis.text for axis in row.loops)
    what = f"{'  ' * row.depth}{row.what}"
    operands = (", ".join(map(_operand_text, some)) for some in (row.reads, row.writes))
    return row.name, what, loops, str(row.cores or ""), *operands, row.rearranged


def _operand_text(operand: PlannedOperand) -> str:
    axes = "x".join(f"{axis.text}*" if axis.marked else axis.text for axis in operand.axes)
    return f"%{operand.value} {operand.memory} {axes}"


def plan_picture(kernels: ModuleOp, files: ModuleOp) -> PlanPicture:
    """Return the plan of a program.

    Args:
        kernels: the program at the kernel level.
        files: the same at the level of its files.
    """
    texts = value_names(kernels)
    count = sum(isinstance(op, SdscOp) for op in files.ops)
    named = {found.op: found for found in named_kernels(kernels, {}, count)}
    calls = [op.callee.root_reference.data for op in ops_in(kernels) if isinstance(op, func.CallOp)]
    found = [
        PlannedFunction(name, calls.count(name), tuple(_rows(op.body.block, 0, texts, named)))
        for op in kernels.ops
        if isinstance(op, func.FuncOp) and op.body.blocks
        for name in [op.sym_name.data]
    ]
    return PlanPicture(tuple(sorted((one for one in found if one.rows), key=lambda one: one.calls > 0)))


def _rows(
    block: Block, depth: int, texts: Mapping[SSAValue, str], named: Mapping[kernel.KernelOp, NamedKernel]
) -> Iterator[PlannedRow]:
    for op in block.ops:
        if isinstance(op, kernel.KernelOp):
            yield kernel_row(op, depth, texts, named[op].name if op in named else "")
        elif isinstance(op, func.CallOp):
            yield PlannedRow(depth, "", f"call {op.callee.root_reference.data}")
        elif isinstance(op, scf.ForOp):
            asked = any(isinstance(inner, kernel.KernelOp) and has_tile(inner) for inner in op.walk())
            yield PlannedRow(depth, "", f"{loop_bounds(op).trips} trips{', as a hint asks' if asked else ''}")
            yield from _rows(op.body.block, depth + 1, texts, named)


def kernel_row(op: kernel.KernelOp, depth: int, texts: Mapping[SSAValue, str], name: str) -> PlannedRow:
    """Return a kernel as a row.

    Args:
        op: the kernel.
        depth: loops around it.
        texts: names of values in the text.
        name: of its file.
    """
    splits = op.space_splits()
    loops = [(d.name, d.extent, splits.get(d.name, 1)) for d in op.space.data]
    operands = [_operand(value, texts.get(value, "")) for value in op.operands]
    return PlannedRow(
        depth,
        name,
        op.function_name,
        tuple(PlannedAxis(f"{n} {size}/{over}" if over > 1 else f"{n} {size}", over > 1) for n, size, over in loops),
        prod(splits.values()),
        tuple(operands[:-1]),
        (operands[-1],),
        _rearranged(op),
    )


def _operand(value: SSAValue, name: str) -> PlannedOperand:
    tensor = kernel.device_tensor(value)
    axes = [PlannedAxis(_extent(tensor, dim), dim == tensor.layout.stick) for dim in tensor.layout.order]
    place = value.owner.offset if isinstance(value.owner, kernel.AllocOp) else None
    at = "" if place is None else f" at {place.value.data:,}"
    about = f"{tensor.format}, {tensor.space}{at}, {tensor.sticks * STICK_BYTES:,} bytes with padding"
    return PlannedOperand(name, tuple(axes), tensor.space, about)


def _extent(tensor: DeviceTensor, dim: int) -> str:
    return "unit" if dim == UNIT else str(tensor.shape[dim])


def _rearranged(op: kernel.KernelOp) -> str:
    """What a kernel that computes nothing is for."""
    source, result = op.tensors[0], op.tensors[-1]
    readers = _readers(op)
    if isinstance(op, kernel.RestickifyOp):
        return f"stick {_stick(source)} to {_stick(result)}{readers}"
    if isinstance(op, kernel.ConvertOp):
        return f"{source.format} to {result.format}{readers}"
    if isinstance(op, GatherOp):
        return f"rows that indices name{readers}"
    if op.function_name != COPY:
        return ""
    if source.space != result.space:
        return f"copy to {result.space}{readers}"
    return f"copy{readers}"


def _stick(tensor: DeviceTensor) -> str:
    return "unit" if tensor.layout.stick == UNIT else str(tensor.layout.stick)


def _readers(op: kernel.KernelOp) -> str:
    users = [use.operation for use in uses_with_tiles(op.output)]
    names = dict.fromkeys(u.function_name for u in users if isinstance(u, kernel.KernelOp) and u is not op)
    if not names:
        return ", for the host" if any(isinstance(user, kernel.FromDeviceOp) for user in users) else ""
    shown: Sequence[str] = list(names)[:_SHOWN_READERS]
    return f", for {' and '.join(shown)}{' and more' if len(names) > len(shown) else ''}"


__all__ = [
    "PlanPicture",
    "PlannedAxis",
    "PlannedFunction",
    "PlannedOperand",
    "PlannedRow",
    "kernel_row",
    "plan_picture",
]
