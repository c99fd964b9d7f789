"""Rules that compare the strides and extents a launch assumes for its tensors with the tensors' layouts.

Arguments lie as the host program sends or allocates them, and are found by address. What kernels alone touch lies as
the manifest says, for its writer and all its readers alike. The manifest also says how a kernel indexes its tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Data, SSAValue
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from spyre_mlir.backend.check.bundle import Bundle, CheckedLaunch
from spyre_mlir.backend.manifest import AGAIN, LaunchWalk
from spyre_mlir.backend.provenance import layout_text
from spyre_mlir.backend.split import launches
from spyre_mlir.backend.stored import MANIFEST_FILE, StoredBundle
from spyre_mlir.backend.weights import launched_buffers
from spyre_mlir.dialects.spyre.attributes import DeviceTensor, DeviceTensorType, IndexMapAttr
from spyre_mlir.dialects.spyre.core_view import CoreLoop, core_view, local_walk
from spyre_mlir.dialects.spyre.kernel import LaunchOp, device_tensor, segment_of
from spyre_mlir.dialects.superdsc.check import Problem
from spyre_mlir.dialects.superdsc.check.rule import error
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, IndirectKind, Operand, labelled_format
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.errors import ReadError
from spyre_mlir.hw.spec import SEGMENT_BYTES, STICK_BYTES
from spyre_mlir.hw.sticks import IndexMap, StickAccess, StickError, access

Parsed = TypeVar("Parsed")

OURS = "the bundle directory of this project"


@error(OURS, "C")
def manifest_layout(stored: StoredBundle) -> Iterator[Problem]:
    """The manifest gives arguments and weights the layouts that the host program gives them."""
    buffers = [] if stored.program is None else launched_buffers(stored.program)
    for number, buffer in enumerate(buffers):
        wanted, name = layout_text(buffer), f"argument {number}"
        given = {
            f"$.arguments[{number}]": stored.manifest.layouts.get(name),
            f"$.weights, of {name}": stored.manifest.weight_layouts.get(number),
        }
        for place, got in given.items():
            if got not in (None, wanted):
                yield Problem(place, wanted, f"{got}", AGAIN)


@error(OURS, "C")
def launch_layout(stored: StoredBundle) -> Iterator[Problem]:
    """A launch accesses its tensors in their layouts: with their strides, and within their extents."""
    manifest, ops = stored.manifest, launches(stored.bundle)
    if [file for file, _ in manifest.launches] != [op.sdsc_filename.data for op in ops]:
        return
    known = dict(zip(ops, zip(manifest.walks, manifest.tensors, strict=True), strict=True))
    bundle = Bundle(stored.directory, stored.bundle, {}, spec_at(stored.bundle))
    for function in stored.bundle.ops:
        if isinstance(function, FuncOp):
            memory = _Memory(stored, bundle, _buffers(stored, function.sym_name.data))
            for launch in bundle.launches(function):
                yield from _misread(stored.descriptor(launch.file), launch, memory, *known[launch.op])


def _buffers(stored: StoredBundle, function: str) -> list[SSAValue]:
    """The buffers of the host program that the arguments of a bundle function stand for."""
    ops = [] if stored.program is None else [op for op in stored.program.walk() if isinstance(op, LaunchOp)]
    return [buffer for op in ops if op.bundle.root_reference.data == function for buffer in op.buffers]


def _misread(
    view: Descriptor, launch: CheckedLaunch, memory: _Memory, walk: LaunchWalk, names: Sequence[str]
) -> Iterator[Problem]:
    """Operands of a launch that are not as their tensors lie; none where the manifest does not say how it walks."""
    if not walk.maps:
        return
    indices = [_index(text) for text in walk.maps]
    used = {name for index in indices for expr in index for name, _ in expr.terms}
    named = {dim.label for dim in view.dims} <= walk.labels.keys() and used <= walk.loops.keys()
    if not named or not walk.loops.keys() <= {*walk.labels.values()}:
        yield Problem(launch.file, "loops and labels of the kernel in the manifest", "others", AGAIN)
    elif not len(indices) == len(names) == len(view.operands):
        yield Problem(launch.file, f"tensors and maps of {len(view.operands)} operands", f"{len(indices)}", AGAIN)
    else:
        for number, (index, name) in enumerate(zip(indices, names, strict=True)):
            one = _Walked(view, view.operands[number], walk, index, walk.views.get(number))
            for wanted, got in _wrong(one, memory, memory.offset(launch, one.operand), name):
                yield Problem(f"{launch.file}, operand {number}", wanted, got, AGAIN)


@dataclass(frozen=True)
class _Walked:
    """An operand of a launch: what its file says, how its kernel indexes the tensor, and in which layout it sees it."""

    view: Descriptor
    operand: Operand
    walk: LaunchWalk
    index: IndexMap
    seen: str | None

    @property
    def picked(self) -> set[str]:
        """The dims that stand for the rows of an indexed tensor."""
        link = self.operand.indirect
        gathered = link is not None and link.kind is IndirectKind.VALUE
        return set(self.view.operands[link.partner].order) if link is not None and gathered else set()

    @property
    def strides(self) -> dict[str, int]:
        """Sticks per step of every dim that decides the address, by the file."""
        return {label: step for label, step in self.operand.stick_strides().items() if label not in self.picked}

    def steps(self, *, one_core: bool) -> dict[str, int]:
        """Steps along every dim of the operation, on one core or on all: sticks along the stick."""
        lanes = self.operand.stick_lanes
        sizes = {dim.label: dim.per_core if one_core else dim.extent for dim in self.view.dims}
        return {label: -(-size // lanes.get(label, 1)) for label, size in sizes.items()}

    def access(self, tensor: DeviceTensor) -> StickAccess:
        """The walk through a tensor by the tensor's layout; in LX through a core's slice of it.

        Raises:
            StickError: the layout allows no such walk.
        """
        walk = self.walk
        if tensor.space == keys.HBM:
            return access(tensor.layout, tensor.lanes, self.index, walk.loops)
        dims = {walk.labels[dim.label]: dim for dim in self.view.dims}
        loops = {name: CoreLoop(dims[name].extent, extent, dims[name].split) for name, extent in walk.loops.items()}
        table = [{walk.labels[label]: place for label, place in row.items()} for row in self.view.core_slices]
        return local_walk(tensor, self.index, loops, core_view(tensor, self.index, loops, table))[0]


@dataclass(frozen=True)
class _Offset:
    """Start of each core in the argument or the buffer that it points into."""

    owner: SSAValue | None
    segment: int
    bytes: tuple[int, ...]


@dataclass(frozen=True)
class _Memory:
    """The tensors that one bundle function works on; `buffers` are those of its arguments."""

    stored: StoredBundle
    bundle: Bundle
    buffers: Sequence[SSAValue]

    def offset(self, launch: CheckedLaunch, operand: Operand) -> _Offset | None:
        """Return the position of an operand in device memory; None if it is unknown, or in LX."""
        if operand.component != keys.HBM:
            return None
        starts = [int(start) for start in operand.start]
        if not operand.symbolic:
            segment = starts[0] // SEGMENT_BYTES
            return _Offset(None, segment, tuple(start - segment * SEGMENT_BYTES for start in starts))
        if any(start not in launch.addresses for start in starts):
            return None
        addresses = [launch.addresses[start] for start in starts]
        owner, first = self.bundle.place(addresses[0])
        return _Offset(owner, -1, tuple(first + address - addresses[0] for address in addresses))

    def argument(self, offset: _Offset) -> DeviceTensor | None:
        """The tensor of the host program that an argument of the bundle, or a segment, stands for."""
        if isinstance(offset.owner, BlockArgument):
            number = offset.owner.index
            return device_tensor(self.buffers[number]) if number < len(self.buffers) else None
        found = [buffer for buffer in self.buffers if offset.owner is None and segment_of(buffer) == offset.segment]
        return device_tensor(found[0]) if found else None

    def internal(self, name: str) -> DeviceTensor | None:
        """The tensor of that name which kernels alone touch."""
        layout = None if name.startswith("argument") else self.stored.manifest.layouts.get(name)
        return None if layout is None else _tensor(layout)


def _wrong(one: _Walked, memory: _Memory, offset: _Offset | None, name: str) -> Iterator[tuple[str, str]]:
    """Return the expected and the actual fields of an operand that does not match its tensor."""
    argument = None if offset is None else memory.argument(offset)
    tensor = memory.internal(name) if argument is None else argument
    if tensor is None:
        return
    if one.seen is not None:
        whole, tensor = tensor, _tensor(one.seen)
        if tensor.sticks > whole.sticks:
            yield f"a view of up to {whole.sticks} sticks", f"{tensor.sticks}"
            return
    text = str(DeviceTensorType(tensor)).removeprefix("!spyre.tensor")
    form = labelled_format(one.view.op_func, tensor.format)
    if (one.operand.format, one.operand.component) != (form, tensor.space):
        yield f"{form} in {tensor.space}", f"{one.operand.format} in {one.operand.component}"
        return
    try:
        acc = one.access(tensor)
    except StickError as beyond:
        yield f"a walk through {text}", str(beyond)
        return
    other = list(_other_strides(one, tensor, acc))
    for unit, wanted, got in other:
        yield f"{wanted} sticks from one {unit} of {text} to the next", f"{got}"
    if argument is not None and offset is not None and not other:
        yield from _beyond(one, tensor, offset)


def _other_strides(one: _Walked, tensor: DeviceTensor, acc: StickAccess) -> Iterator[tuple[str, int, int]]:
    """Dims along which the file takes other steps than the tensor's layout: steps of the layout, and of the file."""
    labels, strides, picked = one.walk.labels, one.strides, one.picked
    for label, count in one.steps(one_core=tensor.space == keys.LX).items():
        wanted, got = acc.strides.get(labels.get(label, ""), 0), strides.get(label, 0)
        if count > 1 and wanted != got and label not in picked:
            yield f"step of {label}", wanted, got
    stick = one.operand.stick
    if acc.lane is not None and (stick is None or labels.get(stick) != acc.lane):
        yield f"stick along {acc.lane}", acc.strides[acc.lane], 0
    if picked and one.walk.axis is not None:
        row = prod(one.operand.counts()[: min(one.operand.order.index(label) for label in picked)])
        wanted = tensor.layout.strides(tensor.lanes).get(one.walk.axis, 0)
        if wanted != row:
            yield "row", wanted, row


def _beyond(one: _Walked, tensor: DeviceTensor, offset: _Offset) -> Iterator[tuple[str, str]]:
    """Cores that leave the bytes of an argument; of an indexed tensor, with the first of its rows."""
    steps, size = one.steps(one_core=True), tensor.sticks * STICK_BYTES
    reach = (1 + sum((steps[label] - 1) * step for label, step in one.strides.items())) * STICK_BYTES
    for core, start in enumerate(offset.bytes):
        if start < 0 or start + reach > size:
            yield f"bytes 0 to {size} of the tensor", f"{start} to {start + reach} on core {core}"
            return


@lru_cache(maxsize=1 << 12)
def _index(text: str) -> IndexMap:
    return _parsed(IndexMapAttr, text) if text else ()


@lru_cache(maxsize=1 << 12)
def _tensor(text: str) -> DeviceTensor:
    return _parsed(DeviceTensorType, text)


def _parsed(kind: type[Data[Parsed]], text: str) -> Parsed:
    """Parse an attribute of a kind from the text between its brackets."""
    try:
        return kind.parse_parameter(Parser(Context(), f"<{text}>"))
    except ParseError as wrong:
        message = f"expected the parameters of {kind.name}, got {text!r}: {wrong.msg}"
        raise ReadError(message, where=MANIFEST_FILE, hint=AGAIN) from wrong
