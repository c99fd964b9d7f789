"""Arrays that `--input` names, from files of numpy and safetensors."""

from __future__ import annotations

import tokenize
import zipfile
from collections.abc import Sequence
from pathlib import Path
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
