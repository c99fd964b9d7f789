"""`compile`: turn a model into a callable that runs on the hardware model. Only connects the packages."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from spyre_mlir.backend.check import Findings, check_path
from spyre_mlir.backend.stored import is_parted
from spyre_mlir.builders import build, build_dynamic, build_parted, build_static, import_model
from spyre_mlir.choices import SPECIALIZATIONS
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dynamic.exported import EXPORTED_FILE
from spyre_mlir.dynamic.files import is_dynamic, read_sizes
from spyre_mlir.dynamic.model import DynamicModel
from spyre_mlir.dynamic.programs import with_sizes
from spyre_mlir.errors import InputError
from spyre_mlir.generation import GeneratingModel, Generation
from spyre_mlir.lazy import LazyModel
from spyre_mlir.machine.bundle.host_code import HostCode
from spyre_mlir.options import CompileOptions, takes_options
from spyre_mlir.parted.files import read_parts
from spyre_mlir.parted.model import PartedModel
from spyre_mlir.pickling import remove_folder, write_files
from spyre_mlir.pipeline import LEVELS, lower
from spyre_mlir.progress import progress
from spyre_mlir.universe import make_context

if TYPE_CHECKING:
    from spyre_mlir.report.models.model_info import ModelInfo

_BUCKETS = "compile(model, (x,), dynamic_shapes=…, buckets=[128, 512])"
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
    specializations: int = SPECIALIZATIONS,
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
    specializations: int = SPECIALIZATIONS,
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

    options, buckets = CompileOptions.of(choices), _as_sizes(buckets)
    if generation is not None:
        if example_inputs is not None or example_kwargs is not None or dynamic_shapes is not None or buckets:
            raise InputError(_GENERATES_FROM_NOTHING, hint="compile(model, generation=…)")
        return cast("GeneratingModel", resolve_name(_GENERATING)(model, generation, choices))
    if not is_complete(model):
        if buckets and dynamic_shapes is None:
            raise InputError("buckets need dynamic shapes", hint=_BUCKETS)
        if example_inputs is None and example_kwargs is None:
            if dynamic_shapes is not None:
                raise InputError("dynamic shapes need example inputs", hint="compile(model, (x,), dynamic_shapes=…)")
            return LazyModel(model, options, build_static)
    return build(
        model,
        _as_tuple(example_inputs),
        example_kwargs,
        options,
        dynamic_shapes=dynamic_shapes,
        specializations=specializations,
        buckets=buckets,
    )


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
    return build_parted(exported, saved.name, exported, chosen, saved.specializations, made, saved.masked, saved.apart)


def _loaded_dynamic(folder: Path, choices: Mapping[str, Any], *, check: bool) -> DynamicModel:
    """A model with symbols from its directory."""
    from spyre_mlir.frontend import read_exported
    from spyre_mlir.loaded import LoadedModel

    saved, of_calls = read_sizes(folder, check=check), CompileOptions.of_calls(choices, by="load")
    apart = {sizes: LoadedModel(place, of_calls, check=check) for sizes, place in saved.apart.items()}
    exported = read_exported(folder / EXPORTED_FILE)
    options = CompileOptions.of({**saved.choices, **choices}, by="load")
    with progress(LEVELS[-1], options.progress) as step:
        program = import_model(exported, None, None, step)
    return build_dynamic(exported, program, options, saved.specializations, saved.buckets, saved, apart)


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


def _as_sizes(buckets: Any) -> tuple[int, ...]:
    """The sizes of buckets, read once: an iterator gives them no second time."""
    if buckets is None:
        return ()
    sizes = tuple(cast(Iterable[Any], buckets)) if isinstance(buckets, Iterable) else None
    wrong: list[Any] = (
        [buckets] if sizes is None else [s for s in sizes if isinstance(s, bool) or not isinstance(s, Integral)]
    )
    if wrong:
        raise InputError(f"buckets are a list of sizes, got {wrong[0]!r}", hint=_BUCKETS)
    return tuple(map(int, sizes or ()))


def _as_tuple(example_inputs: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """The example inputs; a tensor alone would be taken for the sequence of its rows."""
    if example_inputs is None:
        return None
    if isinstance(example_inputs, (tuple, list)):
        for number, one in enumerate(example_inputs):
            if isinstance(one, np.ndarray):
                raise InputError(
                    f"example input {number} is an array of NumPy", hint="torch.from_numpy makes a tensor of it"
                )
        return tuple(example_inputs)
    raise InputError(
        f"example inputs are a tuple, got {type(example_inputs).__name__}",
        hint="compile(model, (x,)) for one input x, (x, y) for two",
    )


__all__ = ["check", "compile", "info", "load"]
