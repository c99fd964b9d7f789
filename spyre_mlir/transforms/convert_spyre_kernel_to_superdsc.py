"""Pass `convert-spyre-kernel-to-superdsc`: every kernel op becomes a SuperDSC, the function a host program.

The module then holds the SuperDSCs, a bundle function that runs them in order with every core's addresses, and
the host program: what goes to the device, the launch, what comes back. Host steps divide the kernels into several
launches, each with a bundle function of its own; without kernels there is none. The function of a region becomes one
bundle function, which is launched once per call. Functions that control flow calls stay functions of the host program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from spyre_mlir.choices import Addresses, LoopForm, SdscVersion
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.ir.module_control import called_by_control
from spyre_mlir.dialects.ir.modules import take_apart
from spyre_mlir.dialects.sdscbundle import BUNDLE_FUNCTION
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.kernel_loop import BlockNumberOp, launch_origin
from spyre_mlir.dialects.spyre.static_loop import LoopBounds
from spyre_mlir.dialects.superdsc.model.descriptor import Version
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.errors import LoweringError, SpyreError
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.assign_pool import size_bytes
from spyre_mlir.transforms.kernel_to_superdsc.bundle_function import Base, ConcreteBundle, SymbolicBundle
from spyre_mlir.transforms.kernel_to_superdsc.bundle_loops import LoopNest, Trip, schedule
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import Masks, Placed, describe_kernel
from spyre_mlir.transforms.kernel_to_superdsc.launches import KernelLaunch, erase, hoist, launches_of
from spyre_mlir.transforms.kernel_to_superdsc.written_buffers import check_written
from spyre_mlir.transforms.place_lx import check_placement
from spyre_mlir.transforms.utils.kernels.launches import called_functions, launch_ops
from spyre_mlir.transforms.utils.rebuild import Failures, describe_location


@dataclass
class _Notes:
    """Facts about kernels that the machine needs and files lack, by file number."""

    integers: list[int] = field(default_factory=list[int])
    elements: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def add(self, number: int, placed: Placed) -> None:
        """Notes a kernel that has a file of its own."""
        if placed.watched is not None:
            self.integers += (number, placed.watched)
        if placed.element is not None:
            self.elements.setdefault(str(placed.element), []).append(number)

    def tell(self, launch: kernel.LaunchOp) -> None:
        """Writes them at the launch."""
        if self.integers:
            launch.integer_kernels = DenseArrayBase.from_list(i64, self.integers)
        if self.elements:
            numbers = {name: DenseArrayBase.from_list(i64, found) for name, found in self.elements.items()}
            launch.elements = DictionaryAttr(numbers)


@dataclass
class _Written:
    """What a module has become so far.

    Attributes:
        several: whether it has more than one bundle function.
        sdscs: files, in the order of their numbers.
        made: bundle functions by the launches that they are made from.
        failures: of kernels.
    """

    several: bool
    sdscs: list[Operation] = field(default_factory=list[Operation])
    made: dict[str | int, tuple[func.FuncOp, _Notes]] = field(
        default_factory=dict[str | int, "tuple[func.FuncOp, _Notes]"]
    )
    failures: Failures = field(default_factory=Failures)


@dataclass(frozen=True)
class ConvertSpyreKernelToSuperdscPass(ModulePass):
    """Writes kernel ops as SuperDSCs in a bundle.

    Attributes:
        addresses: `symbolic` binds addresses at run time; `concrete` gives every argument a segment.
        version: which generation of the front end's files is written.
        first: index of the first SuperDSC.
        loops: `loop` writes a loop of kernels as a loop of the bundle, `unroll` writes a SuperDSC for every trip.
        share: ops whose files would differ in symbol ids only are launches of one file. Off, because the published
            specification wants an id to have one value in the whole bundle.
        masks: magnitude of the constant that stands in for padding in maxima and minima: `largest` number of DL16,
            or largest `half`, as torch-spyre writes it.
    """

    name = "convert-spyre-kernel-to-superdsc"

    addresses: Addresses = "symbolic"
    version: SdscVersion = "TS26"
    first: int = 0
    loops: LoopForm = "loop"
    share: bool = False
    masks: Masks = "largest"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Convert the one function of the module that has kernel ops."""
        called = called_functions(op)
        chosen = [f for f in functions(op) if f.sym_name.data not in called and launch_ops(f)]
        alone = [f for f in chosen if f.sym_name.data not in called_by_control(op)]
        if len(alone) > 1:
            raise LoweringError(
                f"{len(alone)} functions have kernel ops, a bundle comes from one",
                hint="put them into separate modules",
            )
        if chosen:
            self._convert(op, chosen, called, spec_of(ctx, op))

    def _convert(
        self, module: ModuleOp, chosen: Sequence[func.FuncOp], called: Mapping[str, func.FuncOp], spec: SpyreSpec
    ) -> None:
        for placed in (*chosen, *called.values()):
            check_placement(placed.body.block)
            check_written(placed.body.block)
        if self.addresses == "concrete" and (called or len(chosen) > 1):
            raise LoweringError(
                "addresses in files are those of one launch, and "
                + ("a region is launched once per call" if called else "control flow decides which launches there are"),
                hint=("run inline-regions at the aten level, or " if called else "") + "use addresses=symbolic",
            )
        self._check_blocks(chosen)
        found = {function: launches_of(function.body.block, called) for function in chosen}
        several = len({launch.key for launches in found.values() for launch in launches}) > 1
        written = _Written(several)
        for function, launches in found.items():
            self._write(function, launches, called, written, spec)
        written.failures.raise_all()
        erase([launch for launches in found.values() for launch in launches])
        host = [f for f in functions(module) if f not in called.values()]
        for converted in (*host, *called.values()):
            converted.detach()
        module.body.block.add_ops([*written.sdscs, *(entry for entry, _ in written.made.values()), *host])
        for converted in called.values():
            take_apart(converted)

    def _check_blocks(self, chosen: Sequence[func.FuncOp]) -> None:
        """Raises LoweringError if files would have to hold addresses that the host works out at each launch."""
        blocks = [op for function in chosen for op in function.walk() if isinstance(op, BlockNumberOp)]
        if self.addresses == "concrete" and blocks:
            raise LoweringError(
                "addresses in files are fixed, and a position that the host knows says where a block starts",
                where=f"{blocks[0].name} at {describe_location(blocks[0])}",
                hint="use addresses=symbolic, or lower again with in_place=False and chosen_experts=False",
            )

    def _write(
        self,
        function: func.FuncOp,
        launches: Sequence[KernelLaunch],
        called: Mapping[str, func.FuncOp],
        written: _Written,
        spec: SpyreSpec,
    ) -> None:
        block, made = function.body.block, written.made
        segments = _segments(launches) if self.addresses == "concrete" else {}
        for launch in launches:
            place = launch.call or launch.body[0]
            bundle = None
            if launch.key not in made:
                name = f"{BUNDLE_FUNCTION}_{len(made)}" if written.several else BUNDLE_FUNCTION
                first = self.first + len(written.sdscs)
                bundle, notes = self._fill(function, launch, first, segments, spec, written.failures)
                written.sdscs += bundle.sdscs
                made[launch.key] = bundle.function(name), notes
            entry, notes = made[launch.key]
            op = kernel.LaunchOp(entry.sym_name.data, launch.operands(called.get(str(launch.key))))
            op.location = place.location if launch.call is not None else op.location
            notes.tell(op)
            block.insert_op_before(op, place)
            if isinstance(bundle, ConcreteBundle):
                _say_segments(bundle, launch, op)
            hoist(op, launch, block)

    def _fill(
        self,
        function: func.FuncOp,
        launch: KernelLaunch,
        first: int,
        segments: Mapping[SSAValue, int],
        spec: SpyreSpec,
        failures: Failures,
    ) -> tuple[SymbolicBundle | ConcreteBundle, _Notes]:
        """The bundle of a launch, whose files are numbered from `first`, and what no file says of its kernels."""
        pool = max((_offset(a) + size_bytes(a) for a in launch.pooled), default=0)
        bundle = self._bundle(launch, pool, segments, spec)
        bases: dict[SSAValue, Base] = {v: Base(n) for n, v in enumerate(launch.arguments)}
        bases |= {a.result: Base(None, _offset(a)) for a in launch.pooled}
        bases |= {a.result: Base(None, _offset(a), local=True) for a in launch.local}

        notes = _Notes()

        def emit(op: kernel.KernelOp, trip: Trip) -> None:
            number = first + len(bundle.sdscs)
            try:
                watched = _valid_lanes(op) if op.is_watched else None
                placed = replace(describe_kernel(op, number, self.masks), watched=watched, element=op.rounds_to)
                bundle.add(placed, [_base(bases, v, trip) for v in (*op.inputs, op.output)], op.location)
                if first + len(bundle.sdscs) > number:
                    notes.add(number, placed)
            except SpyreError as error:
                failures.meet(error, op)

        schedule(launch.body, emit, self._loop(function, bundle))
        return bundle, notes

    def _loop(
        self, function: func.FuncOp, bundle: SymbolicBundle | ConcreteBundle
    ) -> Callable[[LoopBounds, SSAValue], LoopNest] | None:
        """Return the function that opens a loop in the bundle; None if loops are unrolled."""
        if self.loops == "unroll":
            return None
        if isinstance(bundle, SymbolicBundle):
            return bundle.open_loop
        if (loop := next((op for op in function.walk() if isinstance(op, scf.ForOp)), None)) is not None:
            raise LoweringError(
                "addresses in files cannot advance from trip to trip",
                where=f"{loop.name} at {describe_location(loop)}",
                hint="use loops=unroll, or addresses=symbolic",
            )
        return None

    def _bundle(
        self, launch: KernelLaunch, pool: int, segments: Mapping[SSAValue, int], spec: SpyreSpec
    ) -> SymbolicBundle | ConcreteBundle:
        count, version = len(launch.arguments), Version(self.version)
        if self.addresses == "symbolic":
            return SymbolicBundle(count, pool, version, self.share, spec)
        if self.share:
            raise LoweringError(
                "files with addresses in them cannot be shared",
                hint="use addresses=symbolic, or a file for each operation",
            )
        return ConcreteBundle(count, pool, version, spec, [segments.get(v) for v in launch.arguments])


def _valid_lanes(op: kernel.KernelOp) -> int:
    """Elements of the loop in the result's lanes that are no padding; 0 if the result is sparse."""
    lane = op.accesses()[-1].lane
    return 0 if lane is None else op.space.extents[lane]


def _segments(launches: Sequence[KernelLaunch]) -> dict[SSAValue, int]:
    """The segments of buffers: what a test or a user asks for as `segment`; else one for all launches."""
    every = dict.fromkeys(v for launch in launches for v in launch.arguments)
    behind = 1 if any(launch.pooled for launch in launches) else 0
    found: dict[SSAValue, int] = {}
    for number, value in enumerate(every):
        if (asked := kernel.segment_of(value)) is not None:
            found[value] = asked
        elif len(launches) > 1:
            found[value] = number + behind
    return found


def _say_segments(bundle: ConcreteBundle, launch: KernelLaunch, op: kernel.LaunchOp) -> None:
    """Tells the host program where it must put what the files' addresses name."""
    for number, value in enumerate(launch.arguments):
        if isinstance(value.owner, kernel.ArgumentOp):
            value.owner.segment = IntegerAttr(bundle.segment(number), i64)
    if bundle.pool_bytes:
        op.pool_bytes = IntegerAttr(bundle.pool_bytes, i64)


def _offset(alloc: kernel.AllocOp) -> int:
    if alloc.offset is None:
        where = f"{alloc.name} at {describe_location(alloc)}"
        raise LoweringError("a buffer has no place", where=where, hint="run place-lx and assign-pool first")
    return alloc.offset.value.data


def _base(bases: Mapping[SSAValue, Base], value: SSAValue, trip: Trip) -> Base:
    """Return the start of a buffer or a tile, in trip 0 of the loops that are not in `trip`."""
    origin = launch_origin(value)
    base, moved = bases[origin.buffer], sum(size * trip[index] for index, size in origin.steps if index in trip)
    steps = tuple((index, size) for index, size in origin.steps if index not in trip)
    return replace(base, offset_bytes=base.offset_bytes + origin.first + moved, steps=steps)
