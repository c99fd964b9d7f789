"""Indices that a program computes from an argument, as the note on the argument says.

Decision: docs/decisions/0063-positions-are-compared.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute

from spyre_mlir.dialects.aten_arguments import to_value
from spyre_mlir.dialects.aten_sizes import SizeAttr
from spyre_mlir.dialects.ir.index_steps import STEPS, result_of
from spyre_mlir.dialects.size_expressions import evaluate
from spyre_mlir.dialects.tensors import integer_bits, is_unsigned
from spyre_mlir.errors import InputError
from spyre_mlir.machine.arrays import Array


def index_of(by: ArrayAttr[Attribute], values: Array, sizes: Mapping[str, int]) -> Array:
    """Return the indices that the steps of a note make.

    Args:
        by: the steps.
        values: the integers or truth values of the argument.
        sizes: values of the symbols of the program, by name.

    Raises:
        InputError: a step is of another form.
    """
    known = ", ".join(STEPS)
    made = [values if values.dtype == np.bool_ else values.astype(np.int64)]
    for step in by:
        said: Mapping[str, Attribute] = step.data if isinstance(step, DictionaryAttr) else {}
        call = said.get("call")
        name = call.data.removeprefix("aten.") if isinstance(call, StringAttr) else ""
        given = {key: value for key, value in said.items() if key not in ("call", "as")}
        try:
            arguments = {key: _argument(value, made, sizes) for key, value in given.items()}
            made.append(result_of(name, arguments, _kind(said["as"])))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise InputError(
                f"the step {step} of a note on indices cannot be taken: {error}",
                hint=f'a step is as {{call = "aten.mul", as = i64, self = "%0", other = 2 : i64}}, of {known}',
            ) from error
    return made[-1]


def _kind(element: Attribute) -> np.dtype[Any]:
    if not (bits := integer_bits(element)):
        raise TypeError(f"{element} is no type of integers")
    return np.dtype(np.bool_) if bits == 1 else np.dtype(f"{'u' if is_unsigned(element) else ''}int{bits}")


def _argument(value: Attribute, made: Sequence[Array], sizes: Mapping[str, int]) -> Any:
    if isinstance(value, StringAttr) and value.data.startswith("%"):
        return made[int(value.data[1:])]
    if isinstance(value, SizeAttr):
        return evaluate(value.text.data, sizes)
    if isinstance(value, ArrayAttr):
        return tuple(_argument(item, made, sizes) for item in cast("ArrayAttr[Attribute]", value))
    return to_value(value)


__all__ = ["index_of"]
