"""The bundle that calls of a model run, and what of it stays on the card between calls.

Decision: docs/decisions/0001-what-a-call-runs.md
"""

from __future__ import annotations

import os
import tempfile
import weakref
from abc import ABC, abstractmethod
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from spyre_mlir.backend.directory import StoredBundle, WriteOptions, read_bundle, write_bundle
from spyre_mlir.backend.held import HeldBundle
from spyre_mlir.debug.stored_runs import held_program, stored_program
from spyre_mlir.machine.bundle.host_program import DeviceProgram
from spyre_mlir.machine.bundle.transfers import ResidentTensors
from spyre_mlir.pickling import remove_folder
from spyre_mlir.pipeline import LEVELS, Lowered
from spyre_mlir.runtime.residence import CARD
from spyre_mlir.universe import make_context

if TYPE_CHECKING:
    from spyre_mlir.frontend import HostValues

_NAME = "bundle"


class CalledBundle(ABC):
    """A bundle in files, read once. Copies of a model share it, so that all of them see a weight that changes.

    Attributes:
        resident: device tensors and plans of launches.
    """

    def __init__(self) -> None:
        """Reads nothing."""
        self.resident = ResidentTensors()
        self._stored: StoredBundle | None = None
        self._runnable: tuple[StoredBundle | HeldBundle, DeviceProgram] | None = None

    @abstractmethod
    def directory(self) -> Path:
        """Return the directory of the files that calls run from now on."""

    def stored(self) -> StoredBundle:
        """Return the files, read once until `drop`."""
        directory = self.directory()
        if self._stored is None:
            self._stored = read_bundle(directory, make_context())
        return self._stored

    def prepared(self) -> tuple[StoredBundle | HeldBundle, DeviceProgram]:
        """Return the bundle that calls run, and its program in the form that the machine runs."""
        stored = self.stored()
        if self._runnable is None:
            self._runnable = stored, stored_program(stored)
        return self._runnable

    def drop(self) -> None:
        """Forget the files and what stays on the card."""
        self._stored, self._runnable, self.resident = None, None, ResidentTensors()


class WrittenBundle(CalledBundle):
    """The bundle of a lowered program: in memory until its files are asked for, as these may be edited."""

    def __init__(self, lowered: Lowered, values: HostValues, changing: Collection[str]) -> None:
        """Writes nothing.

        Args:
            lowered: the program.
            values: its weights.
            changing: names of tensors that calls change.
        """
        super().__init__()
        self._lowered, self._values, self._changing = lowered, values, changing
        self._directory: Path | None = None
        self._owner = os.getpid()

    @override
    def directory(self) -> Path:
        """Return the directory of the files; written again after a weight has been modified."""
        if self._directory is None or self._owner != os.getpid():  # a fork writes to a folder of its own
            folder = Path(tempfile.mkdtemp(prefix="spyre-"))
            self._directory, self._owner = folder / _NAME, os.getpid()
            weakref.finalize(self, remove_folder, folder, self._owner)
        if CARD.finds_changes(self._values) or not self._directory.exists():
            # Exact numerics get the weights from the model, not from the files.
            options = WriteOptions(self._changing, host_weights=False)
            write_bundle(self._directory, self._lowered.bundle(), self._values.shared(), options)
            self.drop()
        return self._directory

    @override
    def prepared(self) -> tuple[StoredBundle | HeldBundle, DeviceProgram]:
        if self._directory is not None or self._lowered.recalled:  # a recalled program has no modules
            return super().prepared()
        if CARD.finds_changes(self._values):
            self.drop()
        if self._runnable is None:
            modules = self._lowered.modules
            held = HeldBundle(modules[LEVELS[-1]], modules, self._values.shared(), self._changing)
            self._runnable = held, held_program(held)
        return self._runnable


__all__ = ["CalledBundle", "WrittenBundle"]
