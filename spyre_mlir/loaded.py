"""A compiled model from the directory that `save` wrote, without the model it was made from."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Never

from typing_extensions import override
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.backend.check import Severity, check_path
from spyre_mlir.backend.directory import check_replaceable, read_bundle
from spyre_mlir.backend.held import HeldBundle
from spyre_mlir.backend.levels import read_levels
from spyre_mlir.backend.split import launches
from spyre_mlir.backend.stored import DATA_FILE, StoredBundle
from spyre_mlir.backend.whole_files.replacing import replacing
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError
from spyre_mlir.hw.cost_parameters import Profile
from spyre_mlir.machine.bundle.host_code import HostCode
from spyre_mlir.machine.bundle.host_program import DeviceProgram
from spyre_mlir.machine.bundle.host_times import host_times
from spyre_mlir.machine.bundle.timeline import Timeline
from spyre_mlir.options import CompileOptions
from spyre_mlir.pickling import remove_folder, write_files
from spyre_mlir.pipeline import LEVELS, Lowered
from spyre_mlir.report.accuracy import Accuracy
from spyre_mlir.report.accuracy.stored import stored_accuracy
from spyre_mlir.report.timing import bundle_timeline
from spyre_mlir.runtime.called_bundle import CalledBundle
from spyre_mlir.sizes import counted
from spyre_mlir.transforms.inline_regions import InlineRegionsPass
from spyre_mlir.transforms.utils.host_fallback import host_steps_of
from spyre_mlir.universe import make_context

_MODEL = "compile the model that the directory was made from"


class LoadedModel(CompiledModel):
    """A compiled model whose files are those of a directory.

    Calls run on the machine. Weights stay in their files, memory-mapped. What needs the model itself, as comparison
    with torch and other weights, is an error; so are levels as text, unless they were saved.
    """

    def __init__(self, directory: Path, options: CompileOptions, *, check: bool, code: HostCode | None = None) -> None:
        """Reads the programs of a directory, and looks at no weight but to check it."""
        from spyre_mlir.frontend import described_program, read_checkpoint

        context = make_context()
        stored = read_bundle(directory, context)
        if stored.program is None:
            raise InputError(
                "the bundle has no program.mlir, so it is not known how it is called",
                where=str(directory),
                hint="save it with this package, or run it with spyre-run",
            )
        if check:
            _refuse_errors(directory)
        data = directory / DATA_FILE
        # Mapped for this process alone: buffers that calls write to are copied page by page, and the file stays.
        values = read_checkpoint(data) if data.exists() else dict[str, Never]()
        program = described_program(stored.program, values)
        lowered = Lowered(read_levels(directory, context), [], host_steps_of(stored.program))
        super().__init__(program, lowered, options, _LoadedBundle(directory, stored, code))
        self._place = directory

    @property
    @override
    def kernels(self) -> int:
        """Launches of hardware functions, loops counted once."""
        return len(launches(self._bundle.stored().bundle))

    _without_values = "call it in device numerics, or save the compiled model with host_weights=True"

    @override
    def _held(self) -> Collection[str]:
        return self._bundle.stored().weight_names()

    def random_inputs(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword inputs for a trial: numbers uniform in [-1, 1), integers from 0 to 9."""
        from spyre_mlir.frontend import random_inputs

        return random_inputs(self._program)

    @override
    def _flat(self) -> ModuleOp:
        module = self._module(LEVELS[0]).clone()
        InlineRegionsPass().apply(make_context(), module)
        return module

    @override
    def _host_program(self) -> ModuleOp:
        return self._program.module

    @override
    def _timeline(self, profile: Profile) -> Timeline:
        stored, host = self._bundle.stored(), self._program.module
        steps = host_times(host, profile)
        return bundle_timeline(stored.bundle, stored.descriptor, profile, host=steps, program=host)

    @override
    def save(self, directory: str | Path, *, host_weights: bool | None = None, levels: bool = False) -> Path:
        """Copy the directory, all or nothing; it holds what it holds.

        Raises:
            InputError: it is no longer there, or options are given.
        """
        if host_weights is not None or levels:
            raise InputError("a loaded model is saved as it was", hint=_MODEL)
        path = Path(directory)
        if not self._place.is_dir():
            raise InputError(
                "the directory that was loaded is no longer there",
                where=str(self._place),
                hint="load it where it is now",
            )
        check_replaceable(path)
        with replacing(path, durable=True) as made:
            shutil.copytree(self._place, made, dirs_exist_ok=True)
        return path

    @override
    def write_for_pickle(self, directory: Path) -> None:
        """Copy the directory."""
        shutil.copytree(self._place, directory, dirs_exist_ok=True)

    def own_directory(self) -> None:
        """Let the directory go with the last copy of this model."""
        weakref.finalize(self._bundle, remove_folder, self._place, os.getpid())

    @override
    def bind(self, source: Any, buffers: Any = None, **_: Any) -> CompiledModel:
        """Refused: the files have the weights in the card's form."""
        raise InputError("a loaded model keeps its weights", hint=f"{_MODEL}, and bind to that")

    @override
    def verify(self, *args: Any, tolerance: float = 1e-4, **kwargs: Any) -> Any:
        """Refused: there is no model to compare with."""
        raise InputError("a loaded model has no torch model to compare with", hint=f"{_MODEL}, or spyre-run --bisect")

    @override
    def accuracy(self, *args: Any, **kwargs: Any) -> Accuracy:
        """Compare the results of device numerics with exact numerics, as there is no model; see `CompiledModel`.

        `tried` compiles the aten level with changes, if the directory was saved with its levels.

        Raises:
            InputError: exact numerics lack weights, which are there in the card's form only.
        """
        return stored_accuracy(self._bundle.stored(), self._lowered.modules, self._inputs(args, kwargs))


class _LoadedBundle(CalledBundle):
    """The files of a directory, which stay as they are, and the host's code where a file of the caller has it."""

    def __init__(self, directory: Path, stored: StoredBundle, code: HostCode | None) -> None:
        """Takes the files that have been read."""
        super().__init__()
        self._place, self._stored, self._code = directory, stored, code

    @override
    def directory(self) -> Path:
        return self._place

    @override
    def prepared(self) -> tuple[StoredBundle | HeldBundle, DeviceProgram]:
        bundle, program = super().prepared()
        return bundle, program if self._code is None else replace(program, code=self._code)


def _refuse_errors(directory: Path) -> None:
    errors = [one for one in check_path(directory, make_context()) if one.severity is Severity.ERROR]
    if errors:
        first = errors[0]
        raise InputError(
            f"the bundle breaks {counted(len(errors), 'rule')}, so its results could be wrong; the "
            f"first: {first.rule}: {first.file}: {first.path}: expected {first.expected}, got {first.got}",
            where=str(directory),
            hint="spyre_mlir.check lists everything; check=False loads it all the same",
        )


def unpickled(files: Mapping[str, bytes], choices: Mapping[str, Any]) -> LoadedModel:
    """Return the compiled model of a pickle, with its files in a folder that goes when the model does.

    Args:
        files: of the bundle directory, by relative path.
        choices: the options that are about calls.
    """
    folder = Path(tempfile.mkdtemp(prefix="spyre-"))
    write_files(files, folder)
    model = LoadedModel(folder, CompileOptions.of_calls(choices, by="load"), check=False)
    model.own_directory()
    return model


__all__ = ["LoadedModel", "unpickled"]
