"""Lowering of a program through the levels of `order`, with its regions as functions if that is asked for."""

from __future__ import annotations

import logging
import time
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from spyre_mlir.choices import HostFallback
from spyre_mlir.collector import paused_collector
from spyre_mlir.dialects.ir.modules import copy_of, take_apart
from spyre_mlir.errors import LoweringError, UnsupportedError
from spyre_mlir.options import PassOptions
from spyre_mlir.pipeline.observers import PassWatcher
from spyre_mlir.pipeline.order import (
    BEFORE_OUTLINE,
    KTIR,
    LEVELS,
    OUTLINE,
    STAGES,
    Stage,
    check_level,
    check_options,
    made_passes,
    names_of,
)
from spyre_mlir.pipeline.records import StageRecord, record_of
from spyre_mlir.text.render import verify_module
from spyre_mlir.transforms.loop_to_kernel.precision_loss import PrecisionLosses
from spyre_mlir.transforms.utils.hints import warn_of_unmet_hints
from spyre_mlir.transforms.utils.host_fallback import HostStep, host_steps_of, lower_with_more_on_host, tell_host_steps
from spyre_mlir.transforms.utils.kernels.launches import called_functions

if TYPE_CHECKING:
    from spyre_mlir.backend.rendered import RenderedBundle

log = logging.getLogger(__name__)


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
            "concrete"}}``; an optional pass runs if it is named here, and one that is `OFF` does not run.
        watch: is told of every pass.
        host_fallback: whether the host may run what the device cannot: ``error`` refuses, ``warn`` warns once.

    Raises:
        UnsupportedError: host steps are refused; all of them are listed.
        LoweringError: the program does not fit the machine, or a pass left an op that is not legal.
    """
    check_options(options or {})
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
    _apply(made_passes((*BEFORE_OUTLINE, *names_of(STAGES[0], options)), options), outlined, context, watch)
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
        records.append(record_of(stage.level, current, time.perf_counter() - started))
        log.info("%s", records[-1].summary())
    return Lowered(modules, records)


def _run(
    stage: Stage, module: ModuleOp, context: Context, options: PassOptions, watch: PassWatcher | None = None
) -> None:
    """Brings a module to a level, in place."""
    _apply(made_passes(names_of(stage, options), options), module, context, watch)
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


def _apply(passes: Iterable[ModulePass], module: ModuleOp, context: Context, watch: PassWatcher | None) -> None:
    for one in passes:
        if watch is not None:
            watch.before(one.name, module)
        one.apply(context, module)
        if watch is not None:
            watch.after(one.name, module)


def lower_to_ktir(module: ModuleOp, context: Context) -> ModuleOp:
    """Lower a module at the kernel level to KTIR, the alternative target; the input module is not modified.

    Raises:
        UnsupportedError: kernels have no KTIR; all of them are listed.
        LoweringError: the module is of another level.
    """
    lowered = copy_of(module)
    _run(KTIR, lowered, context, {})
    return lowered


__all__ = ["Lowered", "has_calls", "lower", "lower_last", "lower_to_ktir"]
