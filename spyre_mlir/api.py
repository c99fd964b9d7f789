"""`compile`: from a model to a callable that runs on the hardware model. Joins the rooms, nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from spyre_mlir.backend.check import Finding, check_path
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError
from spyre_mlir.machine.faults import OnFault
from spyre_mlir.machine.options import Numerics
from spyre_mlir.machine.overflows import OnOverflow
from spyre_mlir.options import Addresses, CompileOptions, Loops
from spyre_mlir.pipeline import HostFallback, lower
from spyre_mlir.report import Accuracy, Verification
from spyre_mlir.transforms.loop_to_kernel.precision_loss import tell_narrowed
from spyre_mlir.universe import make_context

if TYPE_CHECKING:
    from spyre_mlir.frontend import Program
    from spyre_mlir.report.model_info import ModelInfo

Array = NDArray[Any]
BUNDLE = "bundle"


def compile(
    model: Any,
    example_inputs: Sequence[Any] | None = None,
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    numerics: Numerics = "device",
    addresses: Addresses = "symbolic",
    share_files: bool = False,
    coarse_tile: bool = False,
    loops: Loops = "loop",
    on_fault: OnFault = "raise",
    host_fallback: HostFallback = "warn",
    prefer_device: bool = False,
    keep_float32: bool = False,
    on_overflow: OnOverflow = "warn",
) -> CompiledModel | LazyModel:
    """Compiles a model for Spyre.

    Args:
        model: an `nn.Module`, an `ExportedProgram`, a path of a saved ``.pt2`` file, or an fx `GraphModule`.
        example_inputs: positional inputs of the shapes to compile for; without them a module or graph is
            compiled at its first call, once per signature of inputs.
        example_kwargs: keyword inputs.
        numerics: how calls compute; ``exact`` rounds float32 results once per operation, as eager does,
            ``device`` rounds to the hardware's formats wherever something is stored. `CompiledModel.verify` is always
            exact.
        addresses: ``symbolic`` binds addresses at run time, ``concrete`` writes them into the files.
        share_files: equal operations at different addresses share one SuperDSC file, whose symbol ids every launch
            binds anew; the published specification wants an id to have one value in a bundle, so it is off.
        coarse_tile: chains of kernels whose intermediates exceed the scratchpads run block of rows by block of rows.
        loops: ``loop`` writes a loop into ``bundle.mlir``, ``unroll`` a file for every kernel of every trip, which is
            what concrete addresses need.
        on_fault: what a call does when the program misbehaves: ``raise``, ``warn`` through `logging`, or ``collect``;
            `CompiledModel.log` has what the last call met.
        host_fallback: what the device cannot run becomes a host step: ``warn`` warns once with a list, ``allow`` says
            nothing, ``error`` refuses.
        prefer_device: an operation that takes many kernels runs on the device whatever their number.
        keep_float32: float32 stays float32 on the device instead of DL16, at twice the bytes; products of matrices and
            functions without a form on float32 compute in DL16, which a warning lists and the report counts.
        on_overflow: what a call does when finite numbers go beyond the largest DLFloat16: ``warn`` warns once, with the
            operations and their lines, ``raise`` gives no results, ``ignore`` says nothing; `CompiledModel.log` has
            them in any case. Infinities that come from the host, and what fills a mask, are none of these.

    Raises:
        InputError: an option has no such value, or the inputs are no tuple.
        UnsupportedError: the model has operations that cannot be expressed, or host steps that are refused; all of
            them are listed.
        ImportProgramError: the model cannot be read.
        LoweringError: the program does not fit the machine.
    """
    from spyre_mlir.frontend import import_program, is_complete

    options = CompileOptions(
        numerics=numerics,
        addresses=addresses,
        share_files=share_files,
        coarse_tile=coarse_tile,
        loops=loops,
        on_fault=on_fault,
        host_fallback=host_fallback,
        prefer_device=prefer_device,
        keep_float32=keep_float32,
        on_overflow=on_overflow,
    )
    if example_inputs is None and example_kwargs is None and not is_complete(model):
        return LazyModel(model, options)
    return _compile(import_program(model, _as_tuple(example_inputs), example_kwargs), options)


def check(path: Path | str) -> tuple[Finding, ...]:
    """What a SuperDSC file or a bundle directory breaks of the rules beyond the schema, errors first.

    Raises:
        InputError: there is no such file or directory.
    """
    return check_path(Path(path), make_context())


def info(
    model: Any,
    example_inputs: Sequence[Any] | None = None,
    example_kwargs: Mapping[str, Any] | None = None,
    *,
    prefer_device: bool = False,
) -> ModelInfo:
    """What a model is made of and what would become of it, without compiling it to files.

    Weights are not needed: modules and programs on `meta` or of fake tensors are fine.

    Args:
        model: an `nn.Module`, an `ExportedProgram`, a path of a saved ``.pt2`` file, or an fx `GraphModule`.
        example_inputs: positional inputs; an exported program has its own.
        example_kwargs: keyword inputs.
        prefer_device: as for `compile`.

    Raises:
        InputError: the inputs are no tuple.
        UnsupportedError: the model has operations that cannot be expressed; all of them are listed.
        ImportProgramError: the model cannot be read.
    """
    from spyre_mlir.frontend import import_program
    from spyre_mlir.report.model_info import model_info

    program = import_program(model, _as_tuple(example_inputs), example_kwargs)
    options = CompileOptions(prefer_device=prefer_device).passes()
    return model_info(program, lower(program.module, make_context(), until="spyre.kernel", options=options))


def _as_tuple(example_inputs: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """The example inputs; a tensor alone would be taken for the sequence of its rows."""
    if example_inputs is None or isinstance(example_inputs, (tuple, list)):
        return None if example_inputs is None else tuple(example_inputs)
    raise InputError(
        f"example inputs are a tuple, got {type(example_inputs).__name__}",
        hint="compile(model, (x,)) for one input x, (x, y) for two",
    )


def _compile(program: Program, options: CompileOptions) -> CompiledModel:
    context = make_context()
    lowered = lower(program.module, context, options=options.passes(), host_fallback=options.host_fallback)
    tell_narrowed(lowered.modules["spyre.kernel"])
    return CompiledModel(program, lowered, options)


def _modes(model: Any) -> str:
    """Which modules of a model are in training, one digit each; "" for what is no module."""
    return "".join(str(int(part.training)) for part in model.modules()) if hasattr(model, "modules") else ""


class LazyModel:
    """A model that is compiled at its first call, once per signature of inputs and mode of its modules."""

    def __init__(self, model: Any, options: CompileOptions) -> None:
        """Keeps the model for later."""
        self._model = model
        self._options = options
        self._compiled: dict[str, CompiledModel] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compiles for these inputs if need be, and runs."""
        return self.compiled_for(*args, **kwargs)(*args, **kwargs)

    def compiled_for(self, *args: Any, **kwargs: Any) -> CompiledModel:
        """The program for inputs of this signature."""
        from spyre_mlir.frontend import import_program, signature_of

        signature = f"{_modes(self._model)} {signature_of(args, kwargs)}"
        if (known := self._compiled.get(signature)) is None or known.replaced is not None:
            self._compiled[signature] = _compile(import_program(self._model, args, kwargs), self._options)
        return self._compiled[signature]

    def accuracy(self, *args: Any, **kwargs: Any) -> Accuracy:
        """As `CompiledModel.accuracy`, for the program of these inputs."""
        return self.compiled_for(*args, **kwargs).accuracy(*args, **kwargs)

    @property
    def programs(self) -> tuple[CompiledModel, ...]:
        """The programs compiled so far."""
        return tuple(self._compiled.values())

    def verify(self, *args: Any, tolerance: float = 1e-4, **kwargs: Any) -> Verification:
        """As `CompiledModel.verify`, for the program of these inputs."""
        return self.compiled_for(*args, **kwargs).verify(*args, tolerance=tolerance, **kwargs)


__all__ = ["LazyModel", "check", "compile", "info"]
