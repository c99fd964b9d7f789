"""Build models of all kinds from programs, for `compile` and `load`. Only connects the packages."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from spyre_mlir.cache.lower import lower_once, lowered_key
from spyre_mlir.cache.store import Store
from spyre_mlir.collector import paused_collector
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dynamic.files import SavedSizes, SizesKey
from spyre_mlir.dynamic.model import Buckets, DynamicModel
from spyre_mlir.errors import DataSizesError, InputError, UnsupportedError
from spyre_mlir.options import CompileOptions
from spyre_mlir.padding.buckets import check_bucket
from spyre_mlir.parted.bounded import Bounding
from spyre_mlir.parted.model import PartedModel
from spyre_mlir.pipeline import LEVELS
from spyre_mlir.progress import PassLog, progress
from spyre_mlir.universe import make_context

if TYPE_CHECKING:
    from spyre_mlir.frontend import Program

log = logging.getLogger(__name__)

Step = Callable[[str], object]
_NO_BUCKETS = "leave out buckets: the model is divided where data decides a size, and its parts have none"
_NO_MAX_SIZE = "leave it out; buckets=[…] is for sizes of inputs"


def build(
    model: Any,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any] | None,
    options: CompileOptions,
    *,
    dynamic_shapes: Any,
    specializations: int,
    buckets: Sequence[int],
) -> CompiledModel | DynamicModel | PartedModel:
    """Return the model that `compile` gives for these arguments: static, with symbols, or in parts.

    Raises:
        InputError: buckets are given, and the program has no symbols.
    """
    with progress(LEVELS[-1], options.progress) as step:
        try:
            program = import_model(model, args, kwargs, step, dynamic_shapes, options)
            check_no_bound(options)
        except DataSizesError as sizes:
            if buckets:
                sizes.hint = _NO_BUCKETS
                raise
            return build_parted(model, sizes.name, sizes.exported, options, specializations)
        if program.origin is None:
            if buckets:
                raise InputError("buckets need a program with symbols", hint="export the model with dynamic_shapes")
            return lower_program(program, options, step)
    return build_dynamic(model, program, options, specializations, buckets)


def build_static(
    model: Any, args: tuple[Any, ...] | None, kwargs: Mapping[str, Any] | None, options: CompileOptions
) -> CompiledModel:
    """Return a model for the shapes of its example inputs."""
    with progress(LEVELS[-1], options.progress) as step:
        return lower_program(import_model(model, args, kwargs, step, options=options), options, step)


def build_dynamic(
    model: Any,
    program: Program,
    options: CompileOptions,
    specializations: int,
    buckets: Sequence[int],
    saved: SavedSizes | None = None,
    apart: Mapping[SizesKey, CompiledModel] | None = None,
) -> DynamicModel:
    """A model with symbols; if it was saved, with what was lowered, and with programs for sizes apart."""
    from spyre_mlir.frontend import is_complete

    def build(made: Program) -> CompiledModel:
        store = None if saved is None else saved.lowered
        with progress(LEVELS[-1], options.progress) as step:
            return lower_program(made, options, step, rare=not buckets, shared=False, saved=store)

    def is_proved(made: Program) -> bool:
        return saved is not None and lowered_key(made.module, options) in saved.proved

    def static(args: Sequence[Any], kwargs: Mapping[str, Any]) -> CompiledModel:
        return build_static(model, tuple(args), kwargs, options)

    return DynamicModel(
        program,
        build,
        options,
        specializations=specializations,
        static=None if is_complete(model) else static,
        buckets=Buckets(buckets, partial(check_bucket, options=options), is_proved) if buckets else None,
        apart=apart,
        lowered=None if saved is None else saved.lowered,
    )


def build_parted(
    model: Any,
    name: str,
    exported: Any,
    options: CompileOptions,
    specializations: int,
    made: Mapping[int, CompiledModel] | None = None,
    masked: Collection[int] = (),
    apart: Collection[int] = (),
) -> PartedModel:
    """A model in which data decides sizes, in parts.

    Raises:
        UnsupportedError: torch takes sizes for granted that data decides.
    """
    from spyre_mlir.frontend import import_divided, size_makers

    program = import_divided(name, exported)
    of_parts = replace(options, specialize_values=False)  # Python has read what it reads

    def compiled(part: Any, inputs: tuple[Any, ...], symbols: Any) -> CompiledModel | DynamicModel:
        if symbols is None:
            return build_static(part, inputs, None, of_parts)
        with progress(LEVELS[-1], options.progress) as step:
            imported = import_model(part, inputs, None, step, symbols)
            if imported.origin is None:
                raise UnsupportedError(f"torch takes the sizes of {imported.name} for granted")
        return build_dynamic(part, imported, options, specializations, ())

    def build(made: Program) -> CompiledModel:
        with progress(LEVELS[-1], options.progress) as step:
            return lower_program(made, options, step, shared=False)

    return PartedModel(
        model,
        exported,
        program,
        compiled,
        options,
        specializations=specializations,
        made=made,
        masked=masked,
        apart=apart,
        bounding=None if options.max_size is None else Bounding(options, size_makers(program), build),
    )


def import_model(
    model: Any,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any] | None,
    step: Step,
    dynamic_shapes: Any = None,
    options: CompileOptions | None = None,
) -> Program:
    """Return the program of a model; a step of the progress, and a line of the log."""
    from spyre_mlir.frontend import import_program, unless_ranks_end

    step("import")
    started = time.perf_counter()
    with paused_collector():
        values = options is not None and options.specialize_values
        importing = partial(import_program, model, args, kwargs, dynamic_shapes, specialize_values=values)
        program = unless_ranks_end("the import", importing)
    operations = sum(1 for _ in program.module.walk())
    log.info("import of %s: %d ops, %.3f s", program.name, operations, time.perf_counter() - started)
    return program


def lower_program(
    program: Program,
    options: CompileOptions,
    step: Step,
    *,
    rare: bool = False,
    shared: bool = True,
    saved: Store | None = None,
) -> CompiledModel:
    """Lower a program, or take what was lowered before.

    Args:
        program: at the aten level; its module may be given up.
        options: of the compilation.
        step: shows the progress.
        rare: whether the program is one of many that may never come again, as for `lower_once`.
        shared: whether the module of the program has other readers, and stays.
        saved: what was lowered when the model was saved.
    """
    from spyre_mlir.frontend import unless_ranks_end

    context, watch = make_context(options.spec), PassLog(step)
    make = partial(lower_once, program.module, context, options, watch=watch, rare=rare, saved=saved)
    with paused_collector():
        lowered = unless_ranks_end(f"the compilation of {program.name}", make)
    lowered.free_at_once(program.module, shared=shared)
    lowered.losses.tell()
    return CompiledModel(program, lowered, options)


def check_no_bound(options: CompileOptions) -> None:
    """Raises InputError if sizes that data decides have a bound: the model has none of them."""
    if options.max_size is not None:
        raise InputError("max_size is of sizes that data decides, and the model has none", hint=_NO_MAX_SIZE)


__all__ = [
    "build",
    "build_dynamic",
    "build_parted",
    "build_static",
    "check_no_bound",
    "import_model",
    "lower_program",
]
