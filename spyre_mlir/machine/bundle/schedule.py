"""The order in which a bundle runs its files, found without running them: loops counted, buffers distinguished.

What a bundle costs and when its kernels run is read from here; `bundle` executes the same program for its values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import PurePath

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.scf import ForOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from spyre_mlir.dialects.places import Rebase, source_of
from spyre_mlir.dialects.sdscbundle import BUNDLE_FUNCTION, DeviceMemAllocateOp, InputArgExtractOp, SdscExecuteOp
from spyre_mlir.dialects.spyre.kernel import LaunchOp
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Operand
from spyre_mlir.dialects.target import spec_at
from spyre_mlir.errors import InputError
from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.machine.bundle.run import Loader

ARGUMENT = "argument"
MEMORY = "memory"
POOL = "pool"
SCRATCHPAD = "scratchpad"

_PLACE = re.compile(r'"([^"]+)":(\d+)')


def source_line(location: str) -> str:
    """Return the innermost place of a location as `file.py:12`; empty if it has none."""
    places = _PLACE.findall(location)
    return f"{PurePath(places[-1][0]).name}:{places[-1][1]}" if places else ""


@dataclass(frozen=True)
class Launch:
    """One op of a bundle that runs a file.

    Attributes:
        file: its name.
        descriptor: what it says.
        buffers: per operand, a name for the buffer it lies in and where in it core 0 starts.
        loops: trip counts of the loops around it, outermost first; None where only the run knows.
        opens: how many of these loops begin with it, counted from the innermost.
        source: file and line of the model, if known.
        part: number of the launch that runs it, if a program has several.
        layer: module of the model that the launch stands for, if it is one of several calls of a region.
        module: path of the module it comes from, if known, e.g. ``layers.0.mlp``; empty for the root.
    """

    file: str
    descriptor: Descriptor
    buffers: tuple[str, ...]
    loops: tuple[int | None, ...] = ()
    opens: int = 0
    source: str = ""
    part: int = 0
    layer: str = ""
    module: str = ""

    @property
    def trips(self) -> int:
        """Number of runs; a loop of unknown length counts once."""
        return _runs(self.loops)

    @property
    def iterations(self) -> int:
        """Return the number of loop iterations that begin with the launch."""
        first = len(self.loops) - self.opens
        return sum(_runs(self.loops[: depth + 1]) for depth in range(first, len(self.loops)))


def _runs(loops: tuple[int | None, ...]) -> int:
    return prod(1 if trips is None else trips for trips in loops)


@dataclass(frozen=True)
class BundleLoop:
    """A loop of the bundle and its body."""

    trips: int | None
    body: tuple[Launch | BundleLoop, ...]


Items = tuple[Launch | BundleLoop, ...]


@dataclass(frozen=True)
class Schedule:
    """Launches and loops of a bundle in order, and their card."""

    items: Items
    spec: SpyreSpec = SPYRE


def read_schedule(bundle: ModuleOp, load: Loader, program: ModuleOp | None = None) -> Schedule:
    """Return the launches and loops of a bundle as a tree.

    Args:
        bundle: a parsed ``bundle.mlir``, or the functions of several.
        load: gives the descriptor of a file name.
        program: the host program, which may launch a function several times; without it each runs once.

    Raises:
        InputError: there is no bundle function.
    """
    functions = [op for op in bundle.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith(BUNDLE_FUNCTION)]
    if not functions:
        raise InputError(f"a bundle has a func.func @{BUNDLE_FUNCTION}, this module has none")
    named = {function.sym_name.data: function for function in functions}
    calls = [op for op in program.walk() if isinstance(op, LaunchOp)] if program is not None else []
    order = [(named[_entry(op)], op) for op in calls] or [(function, None) for function in functions]
    several = len(order) > 1
    items = (
        item
        for number, (function, call) in enumerate(order)
        for item in _reader(load, number if several else None, function, call).read(function.body.block, (), 0)
    )
    return Schedule(tuple(items), spec_at(bundle))


def _entry(op: LaunchOp) -> str:
    return op.bundle.root_reference.data


def _reader(load: Loader, number: int | None, function: FuncOp, call: LaunchOp | None) -> _Reader:
    if call is None:
        return _Reader(load, number, "", Rebase())
    return _Reader(load, number, source_of(call.location).module, Rebase.of(function.body.walk(), call))


def launches(items: Items) -> Iterator[Launch]:
    """Return every launch once, in order."""
    for item in items:
        if isinstance(item, Launch):
            yield item
        else:
            yield from launches(item.body)


def unrolled(items: Items) -> Iterator[Launch]:
    """Return every run of a launch, in order; a loop of unknown length runs once."""
    for item in items:
        if isinstance(item, Launch):
            yield item
        else:
            for _ in range(1 if item.trips is None else item.trips):
                yield from unrolled(item.body)


@dataclass(frozen=True)
class _Reader:
    """Reads the launches of one bundle function.

    Attributes:
        number: which launch of the program runs it; None if it is the only one.
        layer: see `Launch`.
        places: of the function's ops at this launch.
    """

    load: Loader
    number: int | None
    layer: str
    places: Rebase

    def read(self, block: Block, loops: tuple[int | None, ...], opens: int) -> Iterator[Launch | BundleLoop]:
        """The launches of a block; the first one, if a loop is first, the first in it, begins `opens` loops."""
        for op in block.ops:
            if isinstance(op, SdscExecuteOp):
                yield self._launch(op, loops, opens)
                opens = 0
            elif isinstance(op, ForOp):
                trips = _trips(op)
                yield BundleLoop(trips, tuple(self.read(op.body.block, (*loops, trips), opens + 1)))
                opens = 0

    def _launch(self, op: SdscExecuteOp, loops: tuple[int | None, ...], opens: int) -> Launch:
        descriptor = self.load(op.sdsc_filename.data)
        values = dict(zip(op.ids, op.addresses, strict=True))
        buffers = tuple(self._buffer(operand, values) for operand in descriptor.operands)
        return Launch(
            op.sdsc_filename.data,
            descriptor,
            buffers,
            loops,
            opens,
            source_line(str(op.location)),
            self.number or 0,
            self.layer,
            self.places.source(source_of(op.location)).module,
        )

    def _buffer(self, operand: Operand, values: Mapping[int, SSAValue]) -> str:
        """The buffer of an operand, and where in it core 0 starts."""
        first = operand.start[0] if operand.start else "0"
        if operand.component == keys.LX:
            return f"{SCRATCHPAD} {first}"
        if not operand.symbolic or int(first) not in values:
            return f"{MEMORY} {first}"
        return " + ".join(self._terms(values[int(first)]))

    @property
    def _launch_of(self) -> str:
        """The suffix that distinguishes the buffers of launches, if a program has several."""
        return "" if self.number is None else f" of launch {self.number}"

    def _terms(self, value: SSAValue) -> list[str]:
        """Return the summands of an address: an argument or the pool first, then constants and terms of loops."""
        owner = value.owner
        if isinstance(owner, InputArgExtractOp):
            return self._terms(owner.arg)
        if isinstance(owner, DeviceMemAllocateOp):
            return [POOL + self._launch_of]
        if isinstance(value, BlockArgument):
            function = value.block.parent_op()
            return [f"{ARGUMENT} {value.index}{self._launch_of}" if isinstance(function, FuncOp) else "loop"]
        constant = _constant(value)
        if constant is not None:
            return [str(constant)]
        operands = owner.operands if isinstance(owner, Operation) else ()
        terms = [term for operand in operands for term in self._terms(operand)]
        return sorted(terms, key=lambda term: not term.startswith((ARGUMENT, POOL)))


def _trips(loop: ForOp) -> int | None:
    low, high, step = (_constant(v) for v in (loop.lb, loop.ub, loop.step))
    if low is None or high is None or not step:
        return None
    return max(0, -(-(high - low) // step))


def _constant(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None
