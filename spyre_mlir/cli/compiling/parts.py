"""`spyre-compile` of a program in which data decides sizes: a directory with a bundle for each part of known sizes.

Decision: docs/decisions/0243-the-command-line-takes-models-in-parts.md
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from spyre_mlir.choices import SPECIALIZATIONS
from spyre_mlir.cli.support.warned import warnings_logged
from spyre_mlir.errors import DataSizesError, InputError
from spyre_mlir.sizes import counted

if TYPE_CHECKING:
    from spyre_mlir.options import CompileOptions

# Flags that are about one program, or about its one bundle, by the name that argparse gives their values.
_OF_ONE_PROGRAM = (
    "weights",
    "device_weights_only",
    "host_weights",
    "levels",
    "report",
    "rival",
    "json",
    "dim",
    "dump_dir",
    "mlir_pass_pipeline_crash_reproducer",
    "explain",
)
_EMITTED = "aten"  # the level that has symbols


def compiled_parts(
    sizes: DataSizesError, options: CompileOptions, arguments: argparse.Namespace, step: Callable[[str], object]
) -> str:
    """Compile a program in parts, and write them if there is a place for them.

    Args:
        sizes: that the program has no single form, with the program.
        options: of the compilation.
        arguments: of the command line.
        step: shows the progress.

    Returns:
        The text for standard output, or for the file of `--emit`.

    Raises:
        InputError: the command line asks for what one program has.
        UnsupportedError: a part cannot be compiled, or host steps are refused.
    """
    from spyre_mlir.builders import build_parted
    from spyre_mlir.transforms.utils.host_fallback import HostStepWarning

    _check(sizes, arguments)
    with warnings_logged(HostStepWarning):
        model = build_parted(sizes.exported, sizes.name, sizes.exported, options, SPECIALIZATIONS)
    if arguments.emit is not None:
        return model.mlir(_EMITTED) + "\n"
    parts, steps = counted(len(model.parts), "part"), counted(len(model.host_steps), "step")
    lines = [f"{model.name}: data decides sizes, {parts} with {steps} of the host that make them", model.summary()]
    if arguments.output is None:
        lines.append("nothing was written; -o DIR writes the parts")
    else:
        step("write")
        lines.append(f"wrote {model.save(arguments.output)}")
    return "\n".join(lines) + "\n"


def _check(sizes: DataSizesError, arguments: argparse.Namespace) -> None:
    """Refuses what the command line asks of one program."""
    asked = [name for name in _OF_ONE_PROGRAM if getattr(arguments, name) not in (None, False, [])]
    if arguments.target != "superdsc":
        asked.append(f"target={arguments.target}")
    if arguments.emit not in (None, _EMITTED):
        asked.append(f"emit={arguments.emit}")
    if asked:
        raise InputError(
            f"data decides sizes in this program, and --{asked[0].replace('_', '-')} is about programs of known sizes",
            where=sizes.where,
            hint=f"leave it out; --emit {_EMITTED} prints the parts, and -o DIR writes them, each a bundle directory",
        )


__all__ = ["compiled_parts"]
