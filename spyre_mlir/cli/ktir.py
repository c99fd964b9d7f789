"""KTIR for the tools: kernels in, the text of a KTIR program out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from spyre_mlir.cli.output import PendingOutput

TARGETS = ("superdsc", "ktir")


def translated(text: bytes, name: str, *, older_spaces: bool = False) -> str:
    """The KTIR of a file that holds kernels, or KTIR already.

    Raises:
        UnsupportedError: kernels have no KTIR; all of them are listed.
        LoweringError: the file is of another level.
    """
    from spyre_mlir.pipeline import lower_to_ktir
    from spyre_mlir.text.ktir_program import program_text
    from spyre_mlir.text.render import parse_module, verify_module
    from spyre_mlir.universe import make_context

    context = make_context()
    module = parse_module(text, context, name)
    verify_module(module)
    return program_text(lower_to_ktir(module, context), older_spaces=older_spaces)


def write_ktir(kernels: ModuleOp, pending: PendingOutput | None) -> str:
    """Writes the KTIR of a module at the kernel level to a file; returns what is to be printed.

    Raises:
        UnsupportedError: kernels have no KTIR; all of them are listed, and no file is written.
    """
    from spyre_mlir.pipeline import lower_to_ktir
    from spyre_mlir.text.ktir_program import program_text
    from spyre_mlir.universe import make_context

    text = program_text(lower_to_ktir(kernels, make_context()))
    if pending is None:
        return text
    pending.write(text)
    pending.close()
    pending.commit()
    return f"wrote {pending.target}\n"
