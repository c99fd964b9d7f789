"""Pass `convert-spyre-kernel-to-superdsc`: every kernel op becomes a SuperDSC, the function a host program.

The module then holds the SuperDSCs, one bundle function that runs them in order with every core's addresses, and
the host program: what goes to the device, the launch, what comes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from spyre_mlir.dialects.context import spec_of
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.kernel_loop import TileOp, origin_of
from spyre_mlir.dialects.spyre.static_loop import LoopBounds
from spyre_mlir.dialects.superdsc.descriptor import Version
from spyre_mlir.errors import LoweringError, SpyreError
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.transforms.assign_pool import size_bytes
from spyre_mlir.transforms.bundle_loops import LoopNest, Trip, schedule
from spyre_mlir.transforms.bundles import Base, ConcreteBundle, SymbolicBundle
from spyre_mlir.transforms.descriptors import describe_kernel
from spyre_mlir.transforms.place_lx import check_placement
from spyre_mlir.transforms.rebuild import describe_location, functions

BUNDLE = "sdsc_bundle"


@dataclass
class _Split:
    """The ops of a function by what becomes of them."""

    before: list[Operation] = field(default_factory=list[Operation])
    pooled: list[kernel.AllocOp] = field(default_factory=list[kernel.AllocOp])
    after: list[Operation] = field(default_factory=list[Operation])
    local: list[kernel.AllocOp] = field(default_factory=list[kernel.AllocOp])
    arguments: list[SSAValue] = field(default_factory=list[SSAValue])


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
    """

    name = "convert-spyre-kernel-to-superdsc"

    addresses: Literal["symbolic", "concrete"] = "symbolic"
    version: Literal["TS25", "TS26", "TSNEW"] = "TS26"
    first: int = 0
    loops: Literal["loop", "unroll"] = "loop"
    share: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Converts the one function of the module that has kernel ops."""
        chosen = [f for f in functions(op) if any(isinstance(o, kernel.KernelOp) for o in f.walk())]
        if len(chosen) > 1:
            raise LoweringError(
                f"{len(chosen)} functions have kernel ops, a bundle comes from one",
                hint="put them into separate modules",
            )
        for function in chosen:
            self._convert(op, function, spec_of(ctx))

    def _convert(self, module: ModuleOp, function: func.FuncOp, spec: SpyreSpec) -> None:
        check_placement(function.body.block)
        parts = _split(function)
        pool = max((_offset(a) + size_bytes(a, spec) for a in parts.pooled), default=0)
        bundle = self._bundle(parts, pool, spec)
        bases: dict[SSAValue, Base] = {v: Base(n) for n, v in enumerate(parts.arguments)}
        bases |= {a.result: Base(None, _offset(a)) for a in parts.pooled}
        bases |= {a.result: Base(None, _offset(a), local=True) for a in parts.local}

        integers: list[int] = []

        def emit(op: kernel.KernelOp, trip: Trip) -> None:
            number = self.first + len(bundle.sdscs)
            try:
                placed = describe_kernel(op, self.first + len(bundle.sdscs))
                bundle.add(placed, [_base(bases, v, trip) for v in (*op.inputs, op.output)], op.location)
                if kernel.INTEGERS in op.attributes and self.first + len(bundle.sdscs) > number:
                    integers.extend((number, _valid_lanes(op)))
            except SpyreError as error:
                error.where = error.where or f"{op.name} at {describe_location(op)}"
                raise

        schedule(function.body.block, emit, self._loop(function, bundle))
        launch = kernel.LaunchOp(BUNDLE, parts.arguments)
        if integers:
            launch.attributes[kernel.INTEGER_KERNELS] = DenseArrayBase.from_list(i64, integers)
        if isinstance(bundle, ConcreteBundle):
            _say_segments(bundle, parts, launch)
        _install(module, function, parts, launch, bundle.sdscs, bundle.function(BUNDLE))

    def _loop(
        self, function: func.FuncOp, bundle: SymbolicBundle | ConcreteBundle
    ) -> Callable[[LoopBounds, SSAValue], LoopNest] | None:
        """What opens a loop in the bundle; None if loops are unrolled."""
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

    def _bundle(self, parts: _Split, pool: int, spec: SpyreSpec) -> SymbolicBundle | ConcreteBundle:
        count, version = len(parts.arguments), Version(self.version)
        if self.addresses == "symbolic":
            return SymbolicBundle(count, pool, version, self.share)
        if self.share:
            raise LoweringError(
                "files with addresses in them cannot be shared", hint="use addresses=symbolic, or share=false"
            )
        return ConcreteBundle(count, pool, version, spec, [_segment(v) for v in parts.arguments])


def _valid_lanes(op: kernel.KernelOp) -> int:
    """Elements of the loop in the result's lanes that are no padding; 0 if the result is sparse."""
    lane = op.accesses()[-1].lane
    return 0 if lane is None else op.space.extents[lane]


def _segment(value: SSAValue) -> int | None:
    """The segment a test or a user asks for, as attribute `segment` of the buffer's op."""
    attribute = value.owner.attributes.get(kernel.SEGMENT) if isinstance(value.owner, Operation) else None
    return attribute.value.data if isinstance(attribute, IntegerAttr) else None


def _say_segments(bundle: ConcreteBundle, parts: _Split, launch: kernel.LaunchOp) -> None:
    """Tells the host program where it must put what the files' addresses name."""
    for number, op in enumerate(parts.before):
        op.attributes[kernel.SEGMENT] = IntegerAttr(bundle.segment(number), i64)
    if bundle.pool_bytes:
        launch.attributes[kernel.POOL_BYTES] = IntegerAttr(bundle.pool_bytes, i64)


def _offset(alloc: kernel.AllocOp) -> int:
    if alloc.offset is None:
        raise LoweringError("a buffer has no place", hint="run place-lx and assign-pool first")
    return alloc.offset.value.data


def _base(bases: Mapping[SSAValue, Base], value: SSAValue, trip: Trip) -> Base:
    """Where a buffer or a tile starts, in trip 0 of the loops that are no trip of `trip`."""
    origin = origin_of(value)
    base, fixed = bases[origin.buffer], sum(size * trip[index] for index, size in origin.steps if index in trip)
    steps = tuple((index, size) for index, size in origin.steps if index not in trip)
    return replace(base, offset_bytes=base.offset_bytes + fixed, steps=steps)


def _split(function: func.FuncOp) -> _Split:
    parts = _Split()
    for op in function.body.block.ops:
        match op:
            case kernel.ToDeviceOp() | kernel.ConstantOp():
                parts.before.append(op)
                parts.arguments.append(op.results[0])
            case kernel.AllocOp() if op.offset is None and kernel.device_tensor(op.result).space == "hbm":
                parts.before.append(op)
                parts.arguments.append(op.results[0])
            case kernel.FromDeviceOp() | func.ReturnOp():
                parts.after.append(op)
            case _:
                _sort(op, parts)
    return parts


def _sort(op: Operation, parts: _Split) -> None:
    """Takes an op that may also stand in a loop."""
    match op:
        case kernel.AllocOp() if kernel.device_tensor(op.result).space == "lx":
            parts.local.append(op)
        case kernel.AllocOp():
            parts.pooled.append(op)
        case scf.ForOp():
            for inner in op.body.block.ops:
                _sort(inner, parts)
        case kernel.KernelOp() | kernel.FreeOp() | TileOp() | scf.YieldOp() | arith.ConstantOp():
            pass
        case _:
            raise LoweringError(
                f"{op.name} among kernel ops",
                where=describe_location(op),
                hint="run the passes before this one first",
            )


def _install(
    module: ModuleOp,
    function: func.FuncOp,
    parts: _Split,
    launch: kernel.LaunchOp,
    sdscs: Sequence[Operation],
    bundle: func.FuncOp,
) -> None:
    block = function.body.block
    kept = {*parts.before, *parts.after}
    for op in reversed(list(block.ops)):
        op.detach()
        if op not in kept:
            op.erase(safe_erase=False)
    block.add_ops([*parts.before, launch, *parts.after])
    function.detach()
    module.body.block.add_ops([*sdscs, bundle, function])
