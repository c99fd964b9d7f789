"""Search for the software of a card: the back-end compiler of Deeptools, and torch-spyre's runtime.

Both are IBM's. What is known of them is what torch-spyre's public sources show; docs/tools/card.md says how sure
each fact is.

Decision: docs/decisions/0158-a-card-is-asked-kernel-by-kernel.md
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spyre_mlir.errors import InputError, UnsupportedError

# torch-spyre execution/async_compile.py runs it by name, with the directory behind `-d`; certain.
COMPILER = "dxp_standalone"
DEFAULT_COMMAND = f"{COMPILER} -d"
# Where notes of torch-spyre's users have it; likely.
USUAL_FOLDERS = (Path("/opt/ibm/spyre/deeptools/bin"),)
MODULE = "torch_spyre"
_SECONDS_TO_START = 60.0
_PROBE = f"import importlib.util as u, sys; sys.exit(u.find_spec({MODULE!r}) is None)"


@dataclass(frozen=True)
class CardSoftware:
    """The software of a card.

    Attributes:
        compiler: command of the back-end compiler; the directory of a bundle follows.
        python: interpreter that has torch-spyre; None if there is only the compiler.
        seconds: longest time that compiling, or running, one directory may take.
    """

    compiler: tuple[str, ...]
    python: str | None
    seconds: float = 600.0


def find_card(
    compiler: str | None = None,
    python: str | None = None,
    *,
    runs: bool = True,
    seconds: float = 600.0,
    environment: Mapping[str, str] | None = None,
) -> CardSoftware:
    """Find the software of a card.

    Args:
        compiler: command of the back-end compiler, to which the directory is appended; by default `dxp_standalone -d`.
        python: interpreter that has torch-spyre; by default this one. torch-spyre and this package name the same
            device, so that an environment has one of them.
        runs: whether kernels are to run; a compiler is enough otherwise.
        seconds: longest time for one directory.
        environment: by default that of this process.

    Raises:
        UnsupportedError: something is missing; says what, where it was looked for, and what to try.
        InputError: the command is none, or the time is not positive.
    """
    if not seconds > 0:
        raise InputError(f"a time of {seconds} seconds", hint="give a positive number of seconds")
    variables = os.environ if environment is None else environment
    command, missing = _command(compiler or DEFAULT_COMMAND), list[str]()
    folders = variables.get("PATH", os.defpath)
    program = shutil.which(command[0], path=folders) or _usual(command[0])
    if program is None:
        missing.append(_no_compiler(command[0], folders))
    interpreter = python or sys.executable
    if runs and (problem := _without_module(interpreter, variables)):
        missing.append(problem)
    if program is None or missing:
        raise UnsupportedError(
            "there is no software of a card:\n" + "\n".join(f"  {line}" for line in missing),
            hint="install Deeptools and torch-spyre, or name them with --card-compiler and --card-python "
            "(find_card(compiler=, python=)); without them, run on the machine",
        )
    return CardSoftware((program, *command[1:]), interpreter if runs else None, seconds)


def _command(text: str) -> list[str]:
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise InputError(f"the command {text!r} cannot be read: {error}", hint="quote it as for a shell") from error
    if not command:
        raise InputError("the command of the compiler is empty", hint=f"the published one is '{DEFAULT_COMMAND}'")
    return command


def _usual(name: str) -> str | None:
    return next((str(f / name) for f in USUAL_FOLDERS if os.access(f / name, os.X_OK)), None)


def _no_compiler(name: str, folders: str) -> str:
    looked = [f for f in folders.split(os.pathsep) if f] + [str(folder) for folder in USUAL_FOLDERS]
    where = "it is not there, or may not be run" if os.sep in name else f"looked in {', '.join(looked)}"
    return f"no back-end compiler '{name}' (Deeptools): {where}"


def _without_module(python: str, environment: Mapping[str, str]) -> str:
    """Return what is wrong with an interpreter; nothing if it has torch-spyre, which is not imported for that."""
    if python == sys.executable and environment is os.environ and importlib.util.find_spec(MODULE) is not None:
        return ""
    try:
        ended = subprocess.run(
            [python, "-c", _PROBE], env=dict(environment), capture_output=True, timeout=_SECONDS_TO_START, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the interpreter '{python}' does not run: {error}"
    return f"no module '{MODULE}' (torch-spyre): looked with {python}" if ended.returncode else ""


def shown(command: Sequence[str]) -> str:
    """Return a command as one would type it."""
    return shlex.join(command)


__all__ = ["COMPILER", "DEFAULT_COMMAND", "MODULE", "CardSoftware", "find_card", "shown"]
