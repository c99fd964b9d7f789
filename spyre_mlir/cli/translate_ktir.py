"""KTIR output of the tools: from kernels to the text of a KTIR program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spyre_mlir.cli.support.output import PendingDirectory, PendingOutput
from spyre_mlir.errors import InputError
from spyre_mlir.sizes import counted

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

TARGETS = ("superdsc", "ktir")
_KERNELS = "spyre.kernel"

# Between modules on one stream, as `spyre-opt --split-input-file` reads them.
_SEPARATOR = "// -----\n"


def ktir_module(text: bytes, name: str) -> ModuleOp:
    """Return the KTIR of a file that holds kernels, or KTIR already.

    Raises:
        UnsupportedError: kernels have no KTIR; all of them are listed.
        InputError: the file is of another level.
    """
    from spyre_mlir.debug.remaining_passes import level_of
    from spyre_mlir.pipeline import lower_to_ktir
    from spyre_mlir.text.render import parse_module, verify_module
    from spyre_mlir.universe import make_context

    context = make_context()
    module = parse_module(text, context, name)
    verify_module(module)
    if not any(op.name.startswith("ktdp.") for op in module.walk()) and (level := level_of(module)) != _KERNELS:
        raise InputError(
            f"KTIR is made of kernels, and this program is at the level {level}",
            where=name,
            hint=f"spyre-opt FILE --to {_KERNELS} lowers a program of the levels above",
        )
    return lower_to_ktir(module, context)


def pending_ktir(output: str, *, split: bool) -> PendingOutput | PendingDirectory | None:
    """Return the destination of KTIR: a file, or with `split` a directory; None for standard output.

    Raises:
        OSError: the file cannot be written.
        InputError: the directory holds something.
    """
    if output == "-":
        return None
    return PendingDirectory(output) if split else PendingOutput(output)


def deliver(
    module: ModuleOp, pending: PendingOutput | PendingDirectory | None, *, split: bool, older_spaces: bool = False
) -> str:
    """Write a KTIR program to its destination, and return the text to print.

    Args:
        module: the program.
        pending: from `pending_ktir`.
        split: whether every function is a module of its own: NAME.mlir in a directory, or on one stream.
        older_spaces: spell memory spaces as before August 2026.
    """
    from spyre_mlir.text.ktir_program import function_texts, program_text

    if isinstance(pending, PendingDirectory):
        texts = function_texts(module, older_spaces=older_spaces)
        pending.commit({f"{name}.mlir": text for name, text in texts.items()})
        return f"wrote {counted(len(texts), 'module')} to {pending.target}\n"
    if split:
        text = _SEPARATOR.join(function_texts(module, older_spaces=older_spaces).values())
    else:
        text = program_text(module, older_spaces=older_spaces)
    if pending is None:
        return text
    pending.deliver(text)
    return f"wrote {pending.target}\n"
