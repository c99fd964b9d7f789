"""Output of a running pipeline: a log line, a dump on stderr or a file per pass."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.arg_spec import ArgSpec

from spyre_mlir.cli.support.pipeline_text import spec_text
from spyre_mlir.cli.support.reproducer import FailureRecorder, complete_text
from spyre_mlir.errors import InputError
from spyre_mlir.options import ENABLED, PassOptions
from spyre_mlir.progress import PassLog
from spyre_mlir.text.render import module_text


class PassWatch(PassLog):
    """Observer of a module through the passes that also dumps it.

    Args:
        dump_dir: where `NN-pass.mlir` files go, the module as it entered first; made if it is missing.
        shown: names of the passes whose result is written to stderr.
        generic: whether dumps use the generic format.
        locations: whether dumps carry every op's location.
        step: is told the name of every pass that begins.

    Raises:
        InputError: the directory cannot be made.
    """

    def __init__(
        self,
        dump_dir: str | None = None,
        shown: Collection[str] = (),
        *,
        generic: bool = False,
        locations: bool = False,
        step: Callable[[str], object] | None = None,
    ) -> None:
        super().__init__(step)
        self._directory = None if dump_dir is None else _made(Path(dump_dir))
        self._shown = shown
        self._generic = generic
        self._locations = locations
        self._number = 0

    def entered(self, module: ModuleOp) -> None:
        """Record a module before its first pass."""
        self._dump("input", module)

    def after(self, name: str, module: ModuleOp) -> float:
        """Report and dump a module after a pass; return the seconds the pass took."""
        seconds = super().after(name, module)
        if name in self._shown:
            sys.stderr.write(f"// -----// IR Dump After {name} //----- //\n{self._text(module)}\n\n")
        self._dump(name, module)
        return seconds

    def _text(self, module: ModuleOp) -> str:
        return module_text(module, generic=self._generic, locations=self._locations)

    def _dump(self, name: str, module: ModuleOp) -> None:
        if self._directory is None:
            return
        path = self._directory / f"{self._number:02}-{name}.mlir"
        self._number += 1
        try:
            path.write_text(self._text(module) + "\n", encoding="utf-8")
        except OSError as error:
            raise _unwritable(path, error) from error


class RecordingWatch(PassWatch):
    """Observer that keeps the module before the running pass, and leaves a reproducer if lowering fails.

    Args:
        path: of the reproducer.
        options: fields of passes by name of the pass.
        dump_dir: as for `PassWatch`.
        step: as for `PassWatch`.

    Raises:
        InputError: a file cannot be written.
    """

    def __init__(
        self,
        path: str,
        options: PassOptions,
        dump_dir: str | None = None,
        *,
        step: Callable[[str], object] | None = None,
    ) -> None:
        super().__init__(dump_dir, step=step)
        self._options = options
        self._runs = False
        self._recorder = FailureRecorder(path, (), verify_each=True, text=complete_text)

    def before(self, name: str, module: ModuleOp) -> None:
        """Keep the module, and start the clock of the pass."""
        super().before(name, module)
        values = {key: value for key, value in self._options.get(name, {}).items() if key != ENABLED}
        spec = ArgSpec(name, {key: (value,) for key, value in values.items() if isinstance(value, bool | int | str)})
        self._recorder.only(module, spec_text(spec))
        self._runs = True

    def after(self, name: str, module: ModuleOp) -> float:
        """Report and dump a module after a pass; return the seconds the pass took."""
        self._runs = False
        return super().after(name, module)

    def failed(self, error: Exception) -> None:
        """Write the module before the pass that failed; a program that is refused between passes leaves nothing."""
        if self._runs:
            self._recorder.failed(error)


def _made(directory: Path) -> Path:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(directory, error) from error
    return directory


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"the dump cannot be written: {error.strerror}",
        where=str(path),
        hint="name a directory that can be created with --dump-dir",
    )
