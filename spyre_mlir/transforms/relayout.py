"""Getting a tensor into the layout a consumer needs: host layouts, restickify, copies, cleared padding."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import lcm

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f64
from xdsl.ir import Attribute, Operation, SSAValue

from spyre_mlir.dialects.spyre.attributes import FirstOnesAttr, IterDim
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.formats import DL16, device_format
from spyre_mlir.hw.legality import stick_for
from spyre_mlir.hw.sticks import UNIT, IndexMap, LinearExpr, StickLayout, round_up
from spyre_mlir.transforms.buffers import Buffer, Define, HostStep, Step, Use, stored_format

RESTICKIFY_STEP = "restickify"
COPY = "identity"
SELECT = "where3"


def lanes_of(form: str) -> int:
    """Elements per stick of a format."""
    return device_format(form).elements_per_stick()


@dataclass
class Versions:
    """The device forms of one loop-level tensor.

    Attributes:
        buffers: one per layout made so far.
        host: the host tensor it comes from, if it does.
        prepared: whether the host lays it out ahead of time (weights, constants), its padding 0.
        constant: the number or pattern it is, if it is one.
    """

    shape: tuple[int, ...]
    format: str
    buffers: list[Buffer] = field(default_factory=list[Buffer])
    host: SSAValue | None = None
    prepared: bool = False
    constant: Attribute | None = None

    @property
    def free_layout(self) -> bool:
        """Whether the host can provide any layout at no cost to the device."""
        return self.prepared or self.constant is not None or (self.host is not None and not self.buffers)

    def find(self, stick: int) -> Buffer | None:
        """The buffer whose stick dimension is `stick`, if there is one."""
        return next((b for b in self.buffers if b.layout.stick == stick), None)


class Planner:
    """Collects buffers and steps of one function; every method leaves a program that is right."""

    def __init__(self) -> None:
        """Starts with an empty plan."""
        self.items: list[Define | Step | HostStep] = []
        self.hosts: dict[SSAValue, bool] = {}  # host tensors, and whether they are laid out ahead of time
        self.versions: dict[SSAValue, Versions] = {}
        self.origin: Operation | None = None
        self._constants: dict[tuple[Attribute, StickLayout], Buffer] = {}

    def define(self, buffer: Buffer) -> Buffer:
        """Adds a buffer to the plan."""
        self.items.append(Define(buffer, self.origin))
        return buffer

    def step(
        self, function: str, space: tuple[IterDim, ...], inputs: list[Use], output: Use, axis: int | None = None
    ) -> None:
        """Adds a kernel step; operands gain the padding their maps ask for."""
        for buffer, index in (*inputs, output):
            buffer.suit(index)
        self.items.append(Step(function, space, inputs, output, self.origin, axis))

    def of(self, value: SSAValue) -> Versions:
        """The device forms of a value; made on first sight."""
        if value not in self.versions:
            made = Versions(shape_of(value), stored_format(element_of(value)))
            if value in self.hosts:
                made.host, made.prepared = value, self.hosts[value]
            self.versions[value] = made
        return self.versions[value]

    def fresh(self, shape: tuple[int, ...], form: str, stick: int) -> Buffer:
        """A new buffer in the published layout."""
        lanes = lanes_of(form)
        return self.define(Buffer(shape, form, StickLayout.published(shape, stick, lanes)))

    def constant(self, value: Attribute, shape: tuple[int, ...], stick: int) -> Buffer:
        """A buffer the host fills with known numbers; equal ones are shared."""
        layout = StickLayout.published(shape, stick, lanes_of(DL16.name))
        key = (value, layout)
        if key not in self._constants:
            self._constants[key] = self.define(Buffer(shape, DL16.name, layout, constant=value, zero_padding=True))
        return self._constants[key]

    def zero(self) -> Buffer:
        """The number 0 on the device."""
        return self.constant(FloatAttr(0.0, f64), (), UNIT)

    def buffer(self, versions: Versions, stick: int) -> Buffer:
        """A buffer of the tensor whose stick dimension is `stick`; re-laid on the device if there is no cheaper way."""
        found = versions.find(stick)
        if found is not None:
            return found
        # A sparse form of an input is sent again: re-laying on the device would move 64 times its bytes.
        if versions.free_layout or (versions.host is not None and stick == UNIT):
            layout = StickLayout.published(versions.shape, stick, lanes_of(versions.format))
            made = self.define(
                Buffer(
                    versions.shape,
                    versions.format,
                    layout,
                    versions.host,
                    versions.constant,
                    zero_padding=versions.prepared or versions.constant is not None,
                )
            )
        else:
            made = self.restickify(versions.buffers[0], stick)
        versions.buffers.append(made)
        return made

    def restickify(self, source: Buffer, stick: int) -> Buffer:
        """A copy with another stick dimension; both stick extents become whole sticks in both buffers."""
        lanes = source.lanes
        made = Buffer(source.shape, source.format, StickLayout.published(source.shape, stick, lanes))
        for buffer, other in ((source, stick), (made, source.layout.stick)):
            if other == UNIT:
                buffer.reserve_units(lanes)
            else:
                buffer.pad(other, lanes)
        self.define(made)
        moved = (source.layout.stick, stick)
        dims = [IterDim(f"d{d}", round_up(e, lanes) if d in moved else e) for d, e in enumerate(source.shape)]
        if UNIT in moved:
            dims.append(IterDim("u", lanes))
        index = tuple(LinearExpr.of(d.name) if d.extent > 1 else LinearExpr() for d in dims)
        self.step(RESTICKIFY_STEP, tuple(d for d in dims if d.extent > 1), [(source, index)], (made, index))
        return made

    def settle(self) -> None:
        """Makes every restickify run over whole buffers, now that all padding is known.

        A file says of a restickify's buffer only how far it differs from the loops, not in which direction; so
        the loops and both buffers get equal extents. Padding grows only, hence this ends.
        """
        settled = False
        while not settled:
            settled = True
            for at, item in reversed(list(enumerate(self.items))):
                if isinstance(item, Step) and item.function == RESTICKIFY_STEP and not _runs_over_all(item):
                    self.items[at] = _over_all(item)
                    settled = False

    def operand(self, value: SSAValue, index: IndexMap, lane: str | None, space: tuple[IterDim, ...]) -> Use:
        """A buffer and map through which an operation with `lane` in its lanes can read `value`."""
        versions = self.of(value)
        stick = stick_for(index, lane, lanes_of(versions.format))
        if stick is not None:
            return self.buffer(versions, stick), index
        copied, own = self.copied(value, index, space)
        where = next(d for d, e in enumerate(own) if e.terms[0][0] == lane)
        return self.buffer(copied, where), own

    def copied(self, value: SSAValue, index: IndexMap, space: tuple[IterDim, ...]) -> tuple[Versions, IndexMap]:
        """A dense copy of what `index` reads: one dimension per loop it uses."""
        used = {n for e in index for n, _ in e.terms}
        dims = tuple(d for d in space if d.name in used)
        versions = self.of(value)
        made = Versions(tuple(d.extent for d in dims), versions.format)
        own = tuple(LinearExpr.of(d.name) for d in dims)
        lane = self._copy_lane(versions, index, dims)
        source, _ = self.operand(value, index, lane, dims)
        stick = UNIT if lane is None else [d.name for d in dims].index(lane)
        out = self.fresh(made.shape, made.format, stick)
        made.buffers.append(out)
        self.step(COPY, dims, [(source, index)], (out, own))
        return made, own

    def _copy_lane(self, versions: Versions, index: IndexMap, dims: tuple[IterDim, ...]) -> str | None:
        """The loop a copy keeps in its lanes: one that needs no re-laying if there is one, else the longest."""
        lanes = lanes_of(versions.format)
        legal = {d.name: stick_for(index, d.name, lanes) for d in dims}
        possible = [d for d in dims if legal[d.name] is not None]
        kept = [d for d in possible if versions.find(legal[d.name] or 0) is not None]
        return max(kept or possible, key=lambda d: d.extent).name if possible else None

    def cleared_tail(self, use: Use, dim: int, extent: int) -> Use:
        """The operand with zeros behind `extent` along its stick dimension `dim`, up to the end of the stick."""
        buffer, _ = use
        lanes = buffer.lanes
        if extent % lanes == 0 or buffer.zero_padding or dim in buffer.cleared:
            return use
        mask = self.constant(FirstOnesAttr(IntegerAttr(extent % lanes, 64)), (lanes,), 0)
        dims, own = _all_elements(buffer.shape, dim, lanes)
        last = tuple(e.shifted(extent - extent % lanes) if d == dim else e for d, e in enumerate(own))
        through = [(mask, (LinearExpr.of(f"d{dim}"),)), (buffer, last), (self.zero(), ())]
        self.step(SELECT, dims, through, (buffer, last))
        buffer.cleared.add(dim)
        return use

    def cleared_rows(self, use: Use, dim: int, extent: int) -> Use:
        """The operand with rows of zeros behind `extent` along `dim`, up to a whole number of sticks."""
        buffer, _ = use
        lanes = buffer.lanes
        buffer.pad(dim, lanes)
        if extent % lanes == 0 or buffer.zero_padding or dim in buffer.cleared:
            return use
        dims, own = _all_elements(buffer.shape, dim, round_up(extent, lanes) - extent)
        behind = tuple(e.shifted(extent) if d == dim else e for d, e in enumerate(own))
        self.step(COPY, dims, [(self.zero(), ())], (buffer, behind))
        buffer.cleared.add(dim)
        return use


def _runs_over_all(step: Step) -> bool:
    """Whether a restickify has loops as long as both its buffers are along every dimension."""
    extents = {d.name: d.extent for d in step.space}
    buffers = (step.inputs[0][0], step.output[0])
    return all(extents.get(f"d{d}", 1) == b.layout.extents[d] for b in buffers for d in range(len(b.shape)))


def _over_all(step: Step) -> Step:
    """The restickify with equal extents of its loops and both its buffers."""
    source, made = step.inputs[0][0], step.output[0]
    for dim in range(len(made.shape)):
        multiple = lcm(source.layout.extents[dim], made.layout.extents[dim])
        if source.layout.extents[dim] != made.layout.extents[dim]:
            source.pad(dim, multiple)
            made.pad(dim, multiple)
    dims = [IterDim(f"d{d}", e) for d, e in enumerate(made.layout.extents)]
    dims += [d for d in step.space if not d.name.startswith("d")]
    index = tuple(LinearExpr.of(d.name) if d.extent > 1 else LinearExpr() for d in dims)
    return replace(step, space=tuple(d for d in dims if d.extent > 1), inputs=[(source, index)], output=(made, index))


def _all_elements(shape: tuple[int, ...], dim: int, extent: int) -> tuple[tuple[IterDim, ...], IndexMap]:
    """Loops over a whole tensor, with `extent` elements along `dim`."""
    dims = [IterDim(f"d{d}", extent if d == dim else e) for d, e in enumerate(shape)]
    index = tuple(LinearExpr.of(d.name) if d.extent > 1 else LinearExpr() for d in dims)
    return tuple(d for d in dims if d.extent > 1), index
