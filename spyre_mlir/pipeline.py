"""The levels in order, the passes that lead to each, and what may stand there; no other file defines the order.

Decision: docs/decisions/0016-two-families-one-dialect.md
"""

from __future__ import annotations

import logging
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Protocol

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from spyre_mlir import legality
from spyre_mlir.choices import HostFallback
from spyre_mlir.collector import paused_collector
from spyre_mlir.dialects.ir.modules import OpsByClass, copy_of, ops_in, take_apart
from spyre_mlir.dialects.sdscbundle import DeviceMemAllocateOp
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.kernel import AllocOp, ConvertOp, KernelOp, device_tensor
from spyre_mlir.dialects.spyre.kernel_loop import TileOp
from spyre_mlir.dialects.spyre.kernel_view import ViewOp
from spyre_mlir.dialects.spyre.static_loop import trips_of
from spyre_mlir.dialects.superdsc import SdscOp
from spyre_mlir.errors import InputError, LoweringError, UnsupportedError
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.legality import LegalForms
from spyre_mlir.options import PassOptions
from spyre_mlir.plugins import registry
from spyre_mlir.text.render import verify_module
from spyre_mlir.transforms import get_all_passes
from spyre_mlir.transforms.loop_to_kernel.precision_loss import PrecisionLosses, narrowed
from spyre_mlir.transforms.utils.hints import warn_of_unmet_hints
from spyre_mlir.transforms.utils.host_fallback import HostStep, host_steps_of, lower_with_more_on_host, tell_host_steps
from spyre_mlir.transforms.utils.kernels.launches import called_functions

if TYPE_CHECKING:
    from spyre_mlir.backend.rendered import RenderedBundle

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Stage:
    """One level: the passes that reach it from the previous level, and what may stand there.

    Attributes:
        passes: the pipeline that leads to it, as `spyre-opt -p` takes it; `name?` runs only when asked for,
            and at `@point` the passes of plugins run.
        legal: its ops and types.
    """

    passes: str
    legal: LegalForms

    @property
    def level(self) -> str:
        """The name of the level."""
        return self.legal.level


OUTLINE = "outline-regions"
OPTIONAL = "?"
POINT = "@"
OFF: Mapping[str, object] = {"enabled": False}

STAGES = (
    Stage(f"{OUTLINE}?", legality.ATEN),
    Stage(
        "@aten,place-inputs,spread-experts,turn-heads,pad-heads,fold-padding,convolve-rows,decompose-aten,cse,@aten-decomposed,"
        "convert-aten-to-spyre-loop,scale-results,split-products,update-in-place,forward-copies,join-parts,pack-weights,schedule-host-steps,@spyre.loop",
        legality.LOOP,
    ),
    Stage(
        "cut-rows,cut-columns,choose-layouts,convert-spyre-loop-to-spyre-kernel,keep-on-device,@spyre.kernel,"
        "view-copies,order-batches,plan,divide-work,forward-results,place-lx,assign-pool",
        legality.KERNEL,
    ),
    Stage("convert-spyre-kernel-to-superdsc", legality.SUPERDSC),
)

LEVELS = tuple(stage.level for stage in STAGES)


@dataclass(frozen=True)
class StageRecord:
    """Record of a finished stage.

    Attributes:
        level: the level reached.
        ops: operations of the module, bodies included.
        kernels: hardware functions to run; those of a region count once, however often it is called.
        device_bytes: bytes of device memory (HBM), padding included; at the superdsc level buffers that live at
            different times share the pool.
        lx_bytes: bytes of each core's scratchpad in use, at the kernel level.
        traffic_bytes: bytes of device memory that kernels read and write in all trips and calls, at the kernel level.
        integers: kernels whose results are integers of unknown size, at the kernel level; the machine watches them.
        conversions: kernels that change the format of a tensor, at the kernel level.
        narrowed: kernels that compute in DL16 although float32 was to be kept, at the kernel level.
        seconds: time the passes and the checks took.
        host_steps: operators that the host runs because the device cannot.
    """

    level: str
    ops: int
    kernels: int
    device_bytes: int
    seconds: float
    lx_bytes: int = 0
    traffic_bytes: int = 0
    host_steps: int = 0
    integers: int = 0
    conversions: int = 0
    narrowed: int = 0

    def summary(self) -> str:
        """Return the record as one line for a log."""
        memory = f", {self.device_bytes:,} device bytes" if self.device_bytes else ""
        host = f", {self.host_steps} host steps" if self.host_steps else ""
        return f"level {self.level}: {self.ops} ops, {self.kernels} kernels{host}{memory}, {self.seconds:.3f} s"


@dataclass
class Lowered:
    """A module at every level.

    Attributes:
        modules: one module per level, each its own copy.
        records: what each stage left behind.
        host_steps: what the host runs because the device cannot.
        losses: what is said about kernels that lose precision.
        rendered: the files of the bundle, if they are known.
        recalled: whether it was lowered by an earlier process, so that its modules are read from text when asked for.
    """

    modules: Mapping[str, ModuleOp] = field(default_factory=dict[str, ModuleOp])
    records: list[StageRecord] = field(default_factory=list[StageRecord])
    host_steps: tuple[HostStep, ...] = ()
    losses: PrecisionLosses = field(default_factory=PrecisionLosses)
    rendered: RenderedBundle | None = None
    recalled: bool = False

    def free_at_once(self, program: ModuleOp, *, shared: bool = True) -> None:
        """Let the modules go with this object, without a look of Python's cycle collector at everything alive.

        No reader may use them beyond the life of this object.

        Args:
            program: what was lowered.
            shared: whether it has other readers, and stays.
        """
        if not self.recalled:
            made = [module for module in self.modules.values() if module is not program]
            weakref.finalize(self, _take_apart, made if shared else [*made, program]).atexit = False

    def bundle(self) -> RenderedBundle:
        """Return the files of the bundle without its weights.

        Raises:
            EmitError: the program cannot be written as files.
        """
        from spyre_mlir.backend.rendered import render

        above = {level: self.modules[level] for level in LEVELS[:-1]} if self.rendered is None else {}
        return self.rendered or render(self.modules[LEVELS[-1]], above)


def _take_apart(modules: list[ModuleOp]) -> None:
    while modules:
        take_apart(modules.pop())


def check_level(level: str) -> str:
    """Return the level, after checking that it exists.

    Raises:
        InputError: there is no level of this name.
    """
    if level not in LEVELS:
        raise InputError(f"no level is called '{level}'", hint=f"the levels are {', '.join(LEVELS)}")
    return level


def passes_to(level: str) -> str:
    """Return the pipeline from aten to a level, as `spyre-opt -p` takes it."""
    return ",".join(n for s in STAGES[: LEVELS.index(check_level(level)) + 1] for n in _names(s, {}))


class PassWatcher(Protocol):
    """Observer of every pass; the tools use one that logs and dumps."""

    def before(self, name: str, module: ModuleOp) -> object:
        """Called when a pass begins, with the module that it is about to change."""
        ...

    def after(self, name: str, module: ModuleOp) -> object:
        """Called when a pass has run; the module is not yet verified."""
        ...


def lower(
    module: ModuleOp,
    context: Context,
    *,
    until: str = LEVELS[-1],
    options: PassOptions | None = None,
    watch: PassWatcher | None = None,
    host_fallback: HostFallback = "allow",
) -> Lowered:
    """Lower an aten module through the levels; the input module is not modified.

    An op that cannot be lowered becomes a host step, and the program is lowered again. A program with regions that
    cannot be lowered is lowered without them first.

    Args:
        module: verified, at the aten level.
        context: dialects, passes and the machine.
        until: the last level wanted.
        options: fields of passes by name of the pass, e.g. ``{"convert-spyre-kernel-to-superdsc": {"addresses":
            "concrete"}}``; an optional pass runs if it is named here, and `OFF` leaves a pass out.
        watch: is told of every pass.
        host_fallback: whether the host may run what the device cannot: ``error`` refuses, ``warn`` warns once.

    Raises:
        UnsupportedError: host steps are refused; all of them are listed.
        LoweringError: the program does not fit the machine, or a pass left an op that is not legal.
    """
    _check_options(options or {})
    check_level(until)
    with paused_collector():
        lowered = _with_regions(module, context, until, options or {}, watch) if OUTLINE in (options or {}) else None
        flat = {name: values for name, values in (options or {}).items() if name != OUTLINE}
        run = partial(_lower, context=context, until=until, options=flat, watch=watch)
        try:
            lowered = lowered or run(module)
        except (UnsupportedError, LoweringError) as refused:
            lowered = lower_with_more_on_host(module, run, refused)
            lowered.modules = {**lowered.modules, LEVELS[0]: module}
    lowered.host_steps = host_steps_of(lowered.modules.get(LEVELS[1], module))
    if (kernels := lowered.modules.get(LEVELS[2])) is not None:
        lowered.losses = PrecisionLosses.of(kernels)
        warn_of_unmet_hints(module, kernels)
    tell_host_steps(lowered.host_steps, host_fallback)
    return lowered


def has_calls(module: ModuleOp) -> bool:
    """Return whether a module has regions that are functions."""
    return bool(called_functions(module))


def _with_regions(
    module: ModuleOp, context: Context, until: str, options: PassOptions, watch: PassWatcher | None
) -> Lowered | None:
    """The program lowered with its regions as functions; None if it has none, or they cannot be lowered."""
    outlined = copy_of(module)
    for pass_ in _passes(STAGES[0], options):
        _apply(pass_, context, outlined, watch)
    if not has_calls(outlined):
        return None
    flat = {name: values for name, values in options.items() if name != OUTLINE}
    try:
        return _lower(outlined, context, until, flat, watch)
    except (UnsupportedError, LoweringError) as refused:
        log.info("regions are inlined: %s", refused.message)
        return None


def _lower(module: ModuleOp, context: Context, until: str, options: PassOptions, watch: PassWatcher | None) -> Lowered:
    """One try; see `lower`."""
    modules, records, current = dict[str, ModuleOp](), list[StageRecord](), module
    for stage in STAGES[: LEVELS.index(until) + 1]:
        started = time.perf_counter()
        current = copy_of(current) if modules else current
        _run(stage, current, context, options, watch)
        modules[stage.level] = current
        records.append(_record(stage.level, current, time.perf_counter() - started))
        log.info("%s", records[-1].summary())
    return Lowered(modules, records)


def _run(
    stage: Stage, module: ModuleOp, context: Context, options: PassOptions, watch: PassWatcher | None = None
) -> None:
    """Brings a module to a level, in place."""
    for pass_ in _passes(stage, options):
        _apply(pass_, context, module, watch)
    verify_module(module)
    stage.legal.check(module)


def lower_last(module: ModuleOp, context: Context, options: PassOptions) -> ModuleOp:
    """Lower a module by the last stage alone, as `lower` does; the input module is not modified.

    Args:
        module: verified, at the level above the last.
        context: dialects, passes and the machine.
        options: fields of passes, as for `lower`.
    """
    lowered = copy_of(module)
    _run(STAGES[-1], lowered, context, options)
    return lowered


def _apply(pass_: ModulePass, context: Context, module: ModuleOp, watch: PassWatcher | None) -> None:
    if watch is not None:
        watch.before(pass_.name, module)
    pass_.apply(context, module)
    if watch is not None:
        watch.after(pass_.name, module)


def _passes(stage: Stage, options: PassOptions) -> Iterator[ModulePass]:
    factories = pass_factories()
    for name in _names(stage, options):
        if options.get(name) != OFF:
            yield factories[name]()(**options.get(name, {}))


def _check_options(options: PassOptions) -> None:
    known = {name: pass_factories()[name]() for stage in STAGES for name in _names(stage, options)}
    for name, values in options.items():
        if name not in known:
            raise InputError(f"no level is reached by a pass '{name}'", hint=f"the passes are {', '.join(known)}")
        taken = [*OFF, *(f.name for f in fields(known[name]))]
        if unknown := [option for option in values if option not in taken]:
            raise InputError(f"{name} has no option {unknown[0]}", hint=f"its options are {', '.join(taken) or 'none'}")


def _names(stage: Stage, options: PassOptions) -> Iterator[str]:
    """Names of the passes that lead to a level, in order: those of plugins too, optional ones if they are asked for."""
    for entry in stage.passes.split(","):
        name = entry.removesuffix(OPTIONAL)
        if entry.startswith(POINT):
            yield from (r.op for r in registry.passes_at(entry.removeprefix(POINT)))
        elif name and (name == entry or name in options):
            yield name


def pass_factories() -> dict[str, Callable[[], type[ModulePass]]]:
    """Passes by name: ours, and those of xDSL that lead to a level."""

    def cse() -> type[ModulePass]:
        from xdsl.transforms.common_subexpression_elimination import CommonSubexpressionElimination

        return CommonSubexpressionElimination

    return {**get_all_passes(), "cse": cse}


KTIR_PASS = "convert-spyre-kernel-to-ktdp"
KTIR = Stage(KTIR_PASS, legality.KTIR)


def lower_to_ktir(module: ModuleOp, context: Context) -> ModuleOp:
    """Lower a module at the kernel level to KTIR, the alternative target; the input module is not modified.

    Raises:
        UnsupportedError: kernels have no KTIR; all of them are listed.
        LoweringError: the module is of another level.
    """
    lowered = copy_of(module)
    pass_factories()[KTIR_PASS]()().apply(context, lowered)
    verify_module(lowered)
    KTIR.legal.check(lowered)
    return lowered


def _calls(op: KernelOp, calls: Mapping[str, int]) -> int:
    """How often the function of a kernel is called; once if it is the program."""
    function = op.parent_op()
    while function is not None and not isinstance(function, func.FuncOp):
        function = function.parent_op()
    return 1 if function is None else calls.get(function.sym_name.data, 1)


def _record(level: str, module: ModuleOp, seconds: float) -> StageRecord:
    ops = ops_in(module)
    those = OpsByClass(ops)
    kernels, count = those.of(KernelOp), len(those.of(KernelOp)) + len(those.of(SdscOp))
    results = [r for op in ops for r in op.results if type(r.type) is DeviceTensorType]
    tensors = [device_tensor(r) for r in results if not isinstance(r.owner, TileOp | ViewOp)]
    pool = sum(op.size.value.data for op in those.of(DeviceMemAllocateOp))
    arguments = sum(t.sticks for t in tensors if t.space == "hbm") * STICK_BYTES
    placed = [op for op in those.of(AllocOp) if op.offset is not None]
    used = max((op.end for op in placed if device_tensor(op.result).space == "lx"), default=0)
    calls = Counter(op.callee.root_reference.data for op in those.of(func.CallOp))
    traffic = sum(op.hbm_bytes() * trips_of(op) * _calls(op, calls) for op in kernels)
    integers = sum(op.is_watched for op in kernels)
    conversions = sum(isinstance(op, ConvertOp) for op in kernels)
    more = len(host_steps_of(module)), integers, conversions, narrowed(module).total()
    return StageRecord(level, len(ops), count, arguments + pool, seconds, used, traffic, *more)
