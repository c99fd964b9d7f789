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
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from spyre_mlir.choices import Addresses, LoopForm, SdscVersion
from spyre_mlir.dialects.ir.control import ControlOp, called_by_control
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.host import KernelHostOp
from spyre_mlir.dialects.spyre.kernel_loop import TileOp, origin_of
from spyre_mlir.dialects.spyre.static_loop import LoopBounds
from spyre_mlir.dialects.superdsc.model.descriptor import Version
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.errors import LoweringError, SpyreError
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.assign_pool import size_bytes
from spyre_mlir.transforms.kernel_to_superdsc.bundle_function import Base, ConcreteBundle, SymbolicBundle
from spyre_mlir.transforms.kernel_to_superdsc.bundle_loops import LoopNest, Trip, schedule
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import Masks, Placed, describe_kernel
from spyre_mlir.transforms.place_lx import check_placement
from spyre_mlir.transforms.utils.launches import called_functions, launch_ops
from spyre_mlir.transforms.utils.rebuild import Failures, describe_location, functions

BUNDLE = "sdsc_bundle"


@dataclass
class _Launch:
    """The kernels of one launch, and the buffers they use by where these are.

    Attributes:
        call: the call that launches them, if they are a region's.
    """

    call: func.CallOp | None = None
    body: list[Operation] = field(default_factory=list[Operation])
    arguments: list[SSAValue] = field(default_factory=list[SSAValue])
    pooled: list[kernel.AllocOp] = field(default_factory=list[kernel.AllocOp])
    local: list[kernel.AllocOp] = field(default_factory=list[kernel.AllocOp])

    @property
    def key(self) -> str | int:
        """Equal for launches of one bundle function: the name of the region, or a number of the launch's own."""
        return id(self) if self.call is None else self.call.callee.root_reference.data

    @property
    def operands(self) -> list[SSAValue]:
        """The buffers it is launched with."""
        return self.arguments if self.call is None else list(self.call.arguments)


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
        if self.addresses == "concrete" and (called or len(chosen) > 1):
            raise LoweringError(
                "addresses in files are those of one launch, and "
                + ("a region is launched once per call" if called else "control flow decides which launches there are"),
                hint=("run inline-regions at the aten level, or " if called else "") + "use addresses=symbolic",
            )
        found = {function: _launches(function.body.block, called) for function in chosen}
        several = len({launch.key for launches in found.values() for launch in launches}) > 1
        written = _Written(several)
        for function, launches in found.items():
            self._write(function, launches, written, spec)
        written.failures.raise_all()
        _erase([launch for launches in found.values() for launch in launches])
        host = [f for f in functions(module) if f not in called.values()]
        for converted in (*host, *called.values()):
            converted.detach()
        module.body.block.add_ops([*written.sdscs, *(entry for entry, _ in written.made.values()), *host])

    def _write(self, function: func.FuncOp, launches: Sequence[_Launch], written: _Written, spec: SpyreSpec) -> None:
        block, made = function.body.block, written.made
        segments = _segments(launches) if self.addresses == "concrete" else {}
        for launch in launches:
            place = launch.call or launch.body[0]
            bundle = None
            if launch.key not in made:
                name = f"{BUNDLE}_{len(made)}" if written.several else BUNDLE
                first = self.first + len(written.sdscs)
                bundle, notes = self._fill(function, launch, first, segments, spec, written.failures)
                written.sdscs += bundle.sdscs
                made[launch.key] = bundle.function(name), notes
            entry, notes = made[launch.key]
            op = kernel.LaunchOp(entry.sym_name.data, launch.operands)
            op.location = place.location if launch.call is not None else op.location
            notes.tell(op)
            block.insert_op_before(op, place)
            if isinstance(bundle, ConcreteBundle):
                _say_segments(bundle, launch, op)
            _hoist(op, launch, block)

    def _fill(
        self,
        function: func.FuncOp,
        launch: _Launch,
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
        self, launch: _Launch, pool: int, segments: Mapping[SSAValue, int], spec: SpyreSpec
    ) -> SymbolicBundle | ConcreteBundle:
        count, version = len(launch.arguments), Version(self.version)
        if self.addresses == "symbolic":
            return SymbolicBundle(count, pool, version, self.share, spec)
        if self.share:
            raise LoweringError(
                "files with addresses in them cannot be shared", hint="use addresses=symbolic, or share=false"
            )
        return ConcreteBundle(count, pool, version, spec, [segments.get(v) for v in launch.arguments])


def _valid_lanes(op: kernel.KernelOp) -> int:
    """Elements of the loop in the result's lanes that are no padding; 0 if the result is sparse."""
    lane = op.accesses()[-1].lane
    return 0 if lane is None else op.space.extents[lane]


def _segments(launches: Sequence[_Launch]) -> dict[SSAValue, int]:
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


def _say_segments(bundle: ConcreteBundle, launch: _Launch, op: kernel.LaunchOp) -> None:
    """Tells the host program where it must put what the files' addresses name."""
    for number, value in enumerate(launch.arguments):
        if isinstance(value.owner, kernel.ArgumentOp):
            value.owner.segment = IntegerAttr(bundle.segment(number), i64)
    if bundle.pool_bytes:
        op.pool_bytes = IntegerAttr(bundle.pool_bytes, i64)


def _offset(alloc: kernel.AllocOp) -> int:
    if alloc.offset is None:
        raise LoweringError("a buffer has no place", hint="run place-lx and assign-pool first")
    return alloc.offset.value.data


def _base(bases: Mapping[SSAValue, Base], value: SSAValue, trip: Trip) -> Base:
    """Return the start of a buffer or a tile, in trip 0 of the loops that are not in `trip`."""
    origin = origin_of(value)
    base, fixed = bases[origin.buffer], sum(size * trip[index] for index, size in origin.steps if index in trip)
    steps = tuple((index, size) for index, size in origin.steps if index not in trip)
    return replace(base, offset_bytes=base.offset_bytes + fixed, steps=steps)


def _launches(block: Block, called: Mapping[str, func.FuncOp]) -> list[_Launch]:
    """The launches of a function, in order: calls, and the ops between two of them or of the host steps."""
    found = [_Launch()]
    for op in block.ops:
        match op:
            case KernelHostOp() | ControlOp():
                found.append(_Launch())
            case func.CallOp():
                found += [_of_call(op, called), _Launch()]
            case kernel.ToDeviceOp() | kernel.KernelConstantOp() | kernel.FromDeviceOp() | func.ReturnOp():
                pass
            case kernel.AllocOp() if _is_argument(op.result):
                pass
            case _:
                _check_kept(op)
                found[-1].body.append(op)
    found = [launch for launch in found if launch.call is not None or _runs_kernels(launch.body)]
    values = [*block.args, *(result for op in block.walk() for result in op.results)]
    order: dict[SSAValue, int] = {value: number for number, value in enumerate(values)}
    for launch in found:
        if launch.call is not None:
            continue
        kernels = [o for op in launch.body for o in op.walk() if isinstance(o, kernel.KernelOp)]
        used = {origin_of(v).buffer for op in kernels for v in op.operands}
        for value in sorted(used, key=lambda v: order[v]):
            _sort(value, launch)
    _check_lifetimes(found)
    return found


def _runs_kernels(ops: Sequence[Operation]) -> bool:
    return any(isinstance(o, kernel.KernelOp) for op in ops for o in op.walk())


def _of_call(call: func.CallOp, called: Mapping[str, func.FuncOp]) -> _Launch:
    """The launch of a region's kernels: its arguments are the parameters of the function, used or not."""
    block = called[call.callee.root_reference.data].body.block
    launch = _Launch(call, arguments=list(block.args))
    for op in block.ops:
        if not isinstance(op, func.ReturnOp):
            _check_kept(op)
            launch.body.append(op)
        for inner in op.walk():
            if isinstance(inner, kernel.AllocOp):
                _sort(inner.result, launch)
    return launch


def _is_argument(value: SSAValue) -> bool:
    """Return whether a buffer is a tensor of its own in device memory."""
    owner = value.owner
    if isinstance(owner, kernel.AllocOp):
        return owner.offset is None and kernel.device_tensor(value).space == "hbm"
    return isinstance(owner, (kernel.ToDeviceOp, kernel.KernelConstantOp, ControlOp, Block))


def _sort(value: SSAValue, launch: _Launch) -> None:
    owner = value.owner
    if _is_argument(value):
        launch.arguments.append(value)
    elif isinstance(owner, kernel.AllocOp):
        (launch.local if kernel.device_tensor(value).space == "lx" else launch.pooled).append(owner)


def _check_kept(op: Operation) -> None:
    """Raises LoweringError unless an op among kernels, or one in a loop of them, is what may stand there."""
    for inner in op.walk():
        allowed = kernel.KernelOp, kernel.AllocOp, kernel.FreeOp, TileOp, scf.ForOp, scf.YieldOp, arith.ConstantOp
        if not isinstance(inner, allowed):
            raise LoweringError(
                f"{inner.name} among kernel ops",
                where=describe_location(inner),
                hint="run the passes before this one first",
            )


def _check_lifetimes(launches: Sequence[_Launch]) -> None:
    """Raises LoweringError if a buffer in a pool or in the scratchpads would have to outlive a launch."""
    seen: set[kernel.AllocOp] = set()
    for launch in launches:
        if launch.call is not None:
            continue
        own = {*launch.pooled, *launch.local}
        for op in own & seen:
            raise LoweringError(
                "two launches use a buffer in the pool or the scratchpads, which are lost between them",
                where=f"{op.name} at {describe_location(op)}",
                hint="leave out its address, and place it in hbm",
            )
        seen |= own


def _hoist(op: kernel.LaunchOp, launch: _Launch, block: Block) -> None:
    """Puts what makes tensors among the kernels of a launch before it, in its order: it numbers the tensors."""
    if launch.call is not None:
        return
    ops = list(block.ops)
    for inner in ops[ops.index(op) : ops.index(launch.body[-1])]:
        if inner.results and _is_argument(inner.results[0]):
            inner.detach()
            block.insert_op_before(inner, op)


def _erase(launches: Sequence[_Launch]) -> None:
    """Takes from a function what its launches run."""
    for launch in launches:
        for op in [launch.call] if launch.call is not None else reversed(launch.body):
            op.detach()
            op.erase(safe_erase=False)
