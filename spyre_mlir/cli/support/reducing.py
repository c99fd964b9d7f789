"""`--reduce` and `--reduce-test`: the failure that a reduction keeps, by its text or by a command."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import PassPipeline

from spyre_mlir.errors import InputError
from spyre_mlir.text.render import module_text, verify_module

if TYPE_CHECKING:
    from spyre_mlir.debug.reduction import Test


def reduced(module: ModuleOp, fails: Test, context: Context) -> ModuleOp:
    """Return a small module that fails like a given one.

    Raises:
        InputError: the module does not fail so.
    """
    from spyre_mlir.debug.reduction import reduce_module

    if not fails(module.clone()):
        raise InputError(
            "the failure to keep does not occur on the input",
            hint="give a part of the message of the error, or a command that exits with 0 on the input",
        )
    return reduce_module(module, fails, context)


def fails_with(text: str, pipeline: PassPipeline, context: Context) -> Test:
    """Return the test whether the passes end in an error whose message has this text."""

    def fails(module: ModuleOp) -> bool:
        try:
            pipeline.apply(context, module)
            verify_module(module)
        except Exception as error:  # noqa: BLE001 - a bug of a pass, of any class, is what is reduced
            return text in f"{type(error).__name__}: {error}"
        return False

    return fails


def command_succeeds(command: str) -> Test:
    """Return the test whether a command, called with a file of the module, exits with 0.

    Raises:
        InputError: the command is empty, cannot be read as words, or there is no such program.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"--reduce-test: {error}: {command}", hint="close every quote") from error
    if not words:
        raise InputError("--reduce-test names no command", hint="name a program that takes a file")

    def fails(module: ModuleOp) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "reduced.mlir")
            path.write_text(module_text(module) + "\n", encoding="utf-8")
            try:
                done = subprocess.run([*words, str(path)], stdin=subprocess.DEVNULL, capture_output=True, check=False)
            except OSError as error:
                message = f"--reduce-test: {words[0]} cannot be run: {error.strerror}"
                raise InputError(message, hint="name a program that takes a file") from error
        return done.returncode == 0

    return fails
