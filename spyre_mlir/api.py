"""`compile`: turn a model into a callable that runs on the hardware model. Only connects the packages."""

from __future__ import annotations

import logging
import os
import tempfile
import time
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, cast, overload

from numpy.typing import NDArray

from spyre_mlir.backend.check import Findings, check_path
from spyre_mlir.cache.lower import lower_once, lowered_key
from spyre_mlir.cache.store import Store
from spyre_mlir.collector import paused_collector
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dynamic.exported import EXPORTED_FILE
from spyre_mlir.dynamic.files import SavedSizes, Sizes, is_dynamic, read_sizes
from spyre_mlir.dynamic.model import Buckets, DynamicModel
from spyre_mlir.dynamic.programs import with_sizes
from spyre_mlir.errors import DataSizesError, InputError, UnsupportedError
from spyre_mlir.generation import GeneratingModel, Generation
from spyre_mlir.lazy import LazyModel
from spyre_mlir.machine.bundle.host_code import HostCode
from spyre_mlir.options import CompileOptions, takes_options
from spyre_mlir.padding.buckets import check_bucket
from spyre_mlir.parted.bounded import Bounding
from spyre_mlir.parted.files import is_parted, read_parts
from spyre_mlir.parted.model import PartedModel
from spyre_mlir.pickling import remove_folder, write_files
from spyre_mlir.pipeline import LEVELS, lower
from spyre_mlir.progress import PassLog, progress
from spyre_mlir.universe import make_context

if TYPE_CHECKING:
    from spyre_mlir.frontend import Program
    from spyre_mlir.report.models.model_info import ModelInfo

log = logging.getLogger(__name__)

Array = NDArray[Any]
Step = Callable[[str], object]
BUNDLE = "bundle"
_NO_BUCKETS = "leave out buckets: the model is divided where data decides a size, and its parts have none"
_BUCKETS = "compile(model, (x,), dynamic_shapes=…, buckets=[128, 512])"
_NO_MAX_SIZE = "leave it out; buckets=[…] is for sizes of inputs"
_GENERATES_FROM_NOTHING = "a model that generates takes no example inputs, dynamic shapes or buckets"
# By whether it has symbols.
_SEVERAL = {False: "data divides this model into parts", True: "this model has one for each size"}
# By name: torch_compile is a room above, and loads when it is asked for.
_GENERATING = "spyre_mlir.torch_compile.generating:compile_for_generation"


@overload
def compile(model: Any, *, generation: Generation, **choices: Any) -> GeneratingModel: ...


@overload
def compile(
    model: Any,
    example_inputs: Sequence[Any] | None = None,
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    specializations: int = 16,
    buckets: Sequence[int] = (),
    **choices: Any,
) -> CompiledModel | DynamicModel | LazyModel | PartedModel: ...


@takes_options
def compile(
    model: Any,
    example_inputs: Sequence[Any] | None = None,
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    specializations: int = 16,
    buckets: Sequence[int] = (),
    generation: Generation | None = None,
    **choices: Any,
) -> CompiledModel | DynamicModel | LazyModel | PartedModel | GeneratingModel:
    """Compiles a model for Spyre.

    Args:
        model: an `nn.Module`, an `ExportedProgram`, a path of a saved ``.pt2`` file, or an fx `GraphModule`.
        example_inputs: positional inputs of the shapes to compile for; without them a module or graph is
            compiled at its first call, once per signature of inputs.
        example_kwargs: keyword inputs.
        dynamic_shapes: which sizes are symbols, as `torch.export.export` takes it; a model with symbols is specialised
            for the sizes that its calls have.
        specializations: how many of these are kept.
        buckets: sizes of the one symbol to compile for at once; a call runs on the next larger one, its inputs with
            zeros behind them, and gets the first elements of the results.
        generation: compile a model of transformers for its `generate`; it needs no example inputs.
        **choices: options, the fields of `CompileOptions`.

    Returns:
        A `CompiledModel`, which calls run; a `DynamicModel` for a model with symbols, a `PartedModel` for one in which
        data decides sizes, a `LazyModel` for one without example inputs, a `GeneratingModel` with `generation`.

    Raises:
        InputError: there is no such option, an option has no such value, or the inputs are no tuple.
        UnsupportedError: the model has operations that cannot be expressed, or host steps that are refused; all of
            them are listed.
        ImportProgramError: the model cannot be read.
        LoweringError: the program does not fit the machine.
    """
    from spyre_mlir.frontend import is_complete

    options = CompileOptions.of(choices)
    if generation is not None:
        if example_inputs is not None or example_kwargs is not None or dynamic_shapes is not None or buckets:
            raise InputError(_GENERATES_FROM_NOTHING, hint="compile(model, generation=…)")
        return cast("GeneratingModel", resolve_name(_GENERATING)(model, generation, choices))
    if buckets and dynamic_shapes is None and not is_complete(model):
        raise InputError("buckets need dynamic shapes", hint=_BUCKETS)
    if example_inputs is None and example_kwargs is None and not is_complete(model):
        if dynamic_shapes is not None:
            raise InputError("dynamic shapes need example inputs", hint="compile(model, (x,), dynamic_shapes=…)")
        return LazyModel(model, options, _compile)
    with progress(LEVELS[-1], options.progress) as step:
        try:
            program = _imported(model, _as_tuple(example_inputs), example_kwargs, step, dynamic_shapes, options)
            _check_no_bound(options)
        except DataSizesError as sizes:
            if buckets:
                sizes.hint = _NO_BUCKETS
                raise
            return _parted(model, sizes.name, sizes.exported, options, specializations)
        if program.origin is None:
            if buckets:
                raise InputError("buckets need a program with symbols", hint="export the model with dynamic_shapes")
            return _lowered(program, options, step)
    return _dynamic(model, program, options, specializations, buckets)


def load(
    directory: Path | str, *, check: bool = True, host: HostCode | None = None, **choices: Any
) -> CompiledModel | DynamicModel | PartedModel:
    """Gives back a compiled model from the directory that `save` wrote.

    Calls run on the machine as those of the model that was saved; weights stay in the files, memory-mapped. Results
    have memory of their own, whatever strides the model gave them. A model with symbols, and parts with symbols of a
    model that data divides, are specialised as calls need it, with the options that the model was compiled with.

    Args:
        directory: the bundle directory, or a folder with one per rank: that of this rank is loaded.
        check: whether it is checked before it runs, weights included.
        host: the function `main` of the host code that ``spyre-compile --emit python`` wrote, which then runs.
        **choices: the options that are about calls: ``numerics``, ``on_fault``, ``on_overflow``.

    Raises:
        InputError: the directory breaks a rule, or has no host program, or there is no such option.
        ReadError: there is no such directory, or a file is not what its name says.
    """
    from spyre_mlir.loaded import LoadedModel
    from spyre_mlir.ranks.folder import folder_of_this_rank

    folder, options = folder_of_this_rank(Path(directory)), CompileOptions.of_calls(choices, by="load")
    if not is_parted(folder) and not is_dynamic(folder):
        return LoadedModel(folder, options, check=check, code=host)
    if host is not None:
        raise InputError(f"host code is of one program, and {_SEVERAL[is_dynamic(folder)]}", where=str(folder))
    if is_dynamic(folder):
        return _loaded_dynamic(folder, choices, check=check)
    from spyre_mlir.frontend import read_exported

    saved = read_parts(folder, check=check)
    made = {number: LoadedModel(place, options, check=check) for number, place in saved.folders.items()}
    exported = read_exported(folder / EXPORTED_FILE)
    chosen = CompileOptions.of({**saved.choices, **choices}, by="load")
    return _parted(exported, saved.name, exported, chosen, saved.specializations, made, saved.masked)


def _loaded_dynamic(folder: Path, choices: Mapping[str, Any], *, check: bool) -> DynamicModel:
    """A model with symbols from its directory."""
    from spyre_mlir.frontend import read_exported
    from spyre_mlir.loaded import LoadedModel

    saved, of_calls = read_sizes(folder, check=check), CompileOptions.of_calls(choices, by="load")
    apart = {sizes: LoadedModel(place, of_calls, check=check) for sizes, place in saved.apart.items()}
    exported = read_exported(folder / EXPORTED_FILE)
    options = CompileOptions.of({**saved.choices, **choices}, by="load")
    with progress(LEVELS[-1], options.progress) as step:
        program = _imported(exported, None, None, step)
    return _dynamic(exported, program, options, saved.specializations, saved.buckets, saved, apart)


def unpickled_saved(
    files: Mapping[str, bytes], choices: Mapping[str, Any]
) -> CompiledModel | DynamicModel | PartedModel:
    """Return the model of a pickle, as `load` does, with its files in a folder that goes when the model does.

    Args:
        files: that `save` wrote, by relative path.
        choices: the options that are about calls.
    """
    folder = Path(tempfile.mkdtemp(prefix="spyre-"))
    write_files(files, folder)
    model = load(folder, check=False, **choices)
    weakref.finalize(model, remove_folder, folder, os.getpid())
    return model


def check(path: Path | str) -> Findings:
    """Check a SuperDSC file or a bundle directory against the rules beyond the schema; errors come first.

    Returns:
        The findings as a tuple, which prints as a line per finding and their number.

    Raises:
        InputError: there is no such file or directory.
    """
    return Findings(check_path(Path(path), make_context()))


def info(
    model: Any,
    example_inputs: Sequence[Any] | None = None,
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    prefer_device: bool = False,
    sizes: Mapping[str, int] | None = None,
) -> ModelInfo:
    """Describe the contents of a model and how it would be lowered, without compiling it to files.

    Weights are not needed: modules and programs on `meta` or of fake tensors are fine.

    Args:
        model: an `nn.Module`, an `ExportedProgram`, a path of a saved ``.pt2`` file, or an fx `GraphModule`.
        example_inputs: positional inputs; an exported program has its own.
        example_kwargs: keyword inputs.
        prefer_device: as for `compile`.
        sizes: values of the symbols of a program that was exported with dynamic shapes, by name.

    Raises:
        InputError: the inputs are no tuple, or a symbol has no value, or one out of its range.
        UnsupportedError: the model has operations that cannot be expressed; all of them are listed.
        ImportProgramError: the model cannot be read.
    """
    from spyre_mlir.frontend import import_program
    from spyre_mlir.report.models.model_info import model_info

    program = with_sizes(import_program(model, _as_tuple(example_inputs), example_kwargs), sizes or {})
    options = CompileOptions(prefer_device=prefer_device, regions=False).passes()
    return model_info(program, lower(program.module, make_context(), until="spyre.kernel", options=options))


def _as_tuple(example_inputs: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """The example inputs; a tensor alone would be taken for the sequence of its rows."""
    if example_inputs is None or isinstance(example_inputs, (tuple, list)):
        return None if example_inputs is None else tuple(example_inputs)
    raise InputError(
        f"example inputs are a tuple, got {type(example_inputs).__name__}",
        hint="compile(model, (x,)) for one input x, (x, y) for two",
    )


def _check_no_bound(options: CompileOptions) -> None:
    """Raises InputError if sizes that data decides have a bound: the model has none of them."""
    if options.max_size is not None:
        raise InputError("max_size is of sizes that data decides, and the model has none", hint=_NO_MAX_SIZE)


def _compile(
    model: Any, args: tuple[Any, ...] | None, kwargs: Mapping[str, Any] | None, options: CompileOptions
) -> CompiledModel:
    with progress(LEVELS[-1], options.progress) as step:
        return _lowered(_imported(model, args, kwargs, step, options=options), options, step)


def _dynamic(
    model: Any,
    program: Program,
    options: CompileOptions,
    specializations: int,
    buckets: Sequence[int],
    saved: SavedSizes | None = None,
    apart: Mapping[Sizes, CompiledModel] | None = None,
) -> DynamicModel:
    """A model with symbols; if it was saved, with what was lowered, and with programs for sizes apart."""
    from spyre_mlir.frontend import is_complete

    def build(made: Program) -> CompiledModel:
        store = None if saved is None else saved.lowered
        with progress(LEVELS[-1], options.progress) as step:
            return _lowered(made, options, step, rare=not buckets, shared=False, saved=store)

    def is_proved(made: Program) -> bool:
        return saved is not None and lowered_key(made.module, options) in saved.proved

    def static(args: Sequence[Any], kwargs: Mapping[str, Any]) -> CompiledModel:
        return _compile(model, tuple(args), kwargs, options)

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


def _parted(
    model: Any,
    name: str,
    exported: Any,
    options: CompileOptions,
    specializations: int,
    made: Mapping[int, CompiledModel] | None = None,
    masked: Collection[int] = (),
) -> PartedModel:
    """A model in which data decides sizes, in parts."""
    from spyre_mlir.frontend import import_divided, size_makers

    program = import_divided(name, exported)
    of_parts = replace(options, specialize_values=False)  # Python has read what it reads

    def compiled(part: Any, inputs: tuple[Any, ...], symbols: Any) -> CompiledModel | DynamicModel:
        if symbols is None:
            return _compile(part, inputs, None, of_parts)
        with progress(LEVELS[-1], options.progress) as step:
            imported = _imported(part, inputs, None, step, symbols)
            if imported.origin is None:
                raise UnsupportedError(f"torch takes the sizes of {imported.name} for granted")
        return _dynamic(part, imported, options, specializations, ())

    def build(made: Program) -> CompiledModel:
        with progress(LEVELS[-1], options.progress) as step:
            return _lowered(made, options, step, shared=False)

    return PartedModel(
        model,
        exported,
        program,
        compiled,
        options,
        specializations=specializations,
        made=made,
        masked=masked,
        bounding=None if options.max_size is None else Bounding(options, size_makers(program), build),
    )


def _imported(
    model: Any,
    args: tuple[Any, ...] | None,
    kwargs: Mapping[str, Any] | None,
    step: Step,
    dynamic_shapes: Any = None,
    options: CompileOptions | None = None,
) -> Program:
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


def _lowered(
    program: Program,
    options: CompileOptions,
    step: Step,
    *,
    rare: bool = False,
    shared: bool = True,
    saved: Store | None = None,
) -> CompiledModel:
    from spyre_mlir.frontend import unless_ranks_end

    context, watch = make_context(options.spec), PassLog(step)
    make = partial(lower_once, program.module, context, options, watch=watch, rare=rare, saved=saved)
    with paused_collector():
        lowered = unless_ranks_end(f"the compilation of {program.name}", make)
    lowered.free_at_once(program.module, shared=shared)
    lowered.losses.tell()
    return CompiledModel(program, lowered, options)


__all__ = ["check", "compile", "info", "load"]
