"""A file of IR text that is lowered before a tool reads it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from spyre_mlir.errors import InputError


@contextmanager
def lowered_file(path: str, to: str | None) -> Generator[str]:
    """Give the path of a program that is lowered from where it is; the same path if nothing is to be done.

    Args:
        path: of the file.
        to: the level, or the last pass; None for nothing.

    Raises:
        InputError: it is no file of IR text, or cannot go on to that.
        UnsupportedError, LoweringError: the program cannot be lowered.
    """
    if to is None:
        yield path
        return
    if not path.endswith(".mlir") or not Path(path).is_file():
        raise InputError(
            "--to lowers an .mlir file", where=path, hint="name one, or leave out --to: bundles are lowered already"
        )
    from spyre_mlir.remaining_passes import lower_on
    from spyre_mlir.text.render import module_text, parse_module, verify_module
    from spyre_mlir.universe import make_context

    context = make_context()
    module = parse_module(Path(path).read_bytes(), context, path)
    verify_module(module)
    lower_on(module, context, to)
    with TemporaryDirectory() as directory:
        lowered = Path(directory) / Path(path).name
        lowered.write_text(module_text(module, locations=True), encoding="utf-8")
        yield str(lowered)


__all__ = ["lowered_file"]
