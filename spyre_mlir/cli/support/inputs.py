"""Arrays that `--input` names, from files of numpy and safetensors, and programs that `--to` lowers before they run."""

from __future__ import annotations

import tokenize
import zipfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, cast

from spyre_mlir.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

NUMBERS = "biufc"  # kinds of numpy types


def read_inputs(specs: Sequence[str]) -> dict[str, Array]:
    """Arrays by name, from NAME=FILE.npy or FILE.safetensors.

    Raises:
        InputError: a file cannot be read, holds no numbers, or names an input again.
    """
    given: dict[str, Array] = {}
    for spec in specs:
        for name, value in _read_input(spec).items():
            if name in given:
                raise InputError(f"the input '{name}' is given twice", hint="give it once")
            given[name] = value
    return given


def names_in(specs: Sequence[str]) -> list[str]:
    """Names that arguments of the command line give, before any file is read."""
    return [name for name, equals, _ in (spec.partition("=") for spec in specs) if equals]


def _read_input(spec: str) -> dict[str, Array]:
    """One argument's value, or all tensors of a file."""
    name, equals, file = spec.partition("=")
    if not equals and spec.endswith(".safetensors"):
        from spyre_mlir.backend.tensors import read_tensors

        if not Path(spec).is_file():
            raise InputError("the inputs cannot be read: no such file", where=spec, hint="name a .safetensors file")
        return read_tensors(Path(spec))
    if not equals or not name or not file:
        raise InputError(f"--input {spec}: expected NAME=FILE.npy", hint="or name a file that ends with .safetensors")
    return {name: _read_array(name, file)}


def _read_array(name: str, file: str) -> Array:
    import numpy as np

    try:
        with np.errstate(all="ignore"):  # numpy multiplies what a header claims
            value = np.load(file, allow_pickle=False)
    except OSError as error:
        raise InputError(
            f"the input '{name}' cannot be read: {error.strerror}", where=file, hint="name a file of numpy.save"
        ) from error
    except (ValueError, TypeError, EOFError, SyntaxError, OverflowError, zipfile.BadZipFile, tokenize.TokenError):
        value = None
    if isinstance(value, np.lib.npyio.NpzFile):
        value.close()
    array = cast("Array", value) if isinstance(value, np.ndarray) else None
    if array is None or array.dtype.kind not in NUMBERS:
        raise InputError(f"the input '{name}' is no .npy file of numbers", where=file, hint="write it with numpy.save")
    return array


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
    from spyre_mlir.debug.remaining_passes import lower_on
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
