"""Indices that a program computes from arguments, as the note on one of them says.

Decision: docs/decisions/0244-the-host-repeats-how-indices-are-made.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, bf16, f16, f32, f64
from xdsl.ir import Attribute

from spyre_mlir.dialects.argument_notes import OF_ANOTHER
from spyre_mlir.dialects.aten_arguments import to_value
from spyre_mlir.dialects.aten_sizes import SizeAttr
from spyre_mlir.dialects.size_expressions import evaluate
from spyre_mlir.dialects.tensors import integer_bits, is_unsigned
from spyre_mlir.errors import InputError
from spyre_mlir.machine.arrays import Array
from spyre_mlir.ops.helpers.index_steps import STEPS, result_of

_NONE: Mapping[str, Array] = {}
_FLOATS: Mapping[Attribute, np.dtype[Any]] = {
    f16: np.dtype(np.float16),
    bf16: np.dtype(ml_dtypes.bfloat16),
    f32: np.dtype(np.float32),
    f64: np.dtype(np.float64),
}


def index_of(
    by: ArrayAttr[Attribute], values: Array, sizes: Mapping[str, int], others: Mapping[str, Array] = _NONE
) -> Array:
    """Return the indices that the steps of a note make.

    Args:
        by: the steps.
        values: the numbers of the argument.
        sizes: values of the symbols of the program, by name.
        others: the numbers of the other arguments that steps read, by name.

    Raises:
        InputError: a step is of another form.
    """
    known = ", ".join(STEPS)
    made = [values]
    for step in by:
        said: Mapping[str, Attribute] = step.data if isinstance(step, DictionaryAttr) else {}
        call = said.get("call")
        name = call.data.removeprefix("aten.") if isinstance(call, StringAttr) else ""
        given = {key: value for key, value in said.items() if key not in ("call", "as")}
        try:
            arguments = {key: _argument(value, made, sizes, others) for key, value in given.items()}
            made.append(result_of(name, arguments, _kind(said["as"])))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise InputError(
                f"the step {step} of a note on indices cannot be taken: {error}",
                hint=f'a step is as {{call = "aten.mul", as = i64, self = "%0", other = 2 : i64}}, of {known}',
            ) from error
    return made[-1]


def as_operand(values: Array, element: Attribute) -> Array:
    """Return the numbers of an argument as steps read them.

    Args:
        values: the numbers as the machine has them.
        element: the type of the argument.
    """
    kind = _kind(element)
    return values.astype(np.int64 if kind.kind in "iu" else kind)


def _kind(element: Attribute) -> np.dtype[Any]:
    if element in _FLOATS:
        return _FLOATS[element]
    if not (bits := integer_bits(element)):
        raise TypeError(f"{element} is no type of indices")
    return np.dtype(np.bool_) if bits == 1 else np.dtype(f"{'u' if is_unsigned(element) else ''}int{bits}")


def _argument(value: Attribute, made: Sequence[Array], sizes: Mapping[str, int], others: Mapping[str, Array]) -> Any:
    if isinstance(value, StringAttr) and value.data.startswith("%"):
        return made[int(value.data[1:])]
    if isinstance(value, StringAttr) and value.data.startswith(OF_ANOTHER):
        return others[value.data.removeprefix(OF_ANOTHER)]
    if isinstance(value, SizeAttr):
        return evaluate(value.text.data, sizes)
    if isinstance(value, ArrayAttr):
        return tuple(_argument(item, made, sizes, others) for item in cast("ArrayAttr[Attribute]", value))
    return to_value(value)


__all__ = ["as_operand", "index_of"]
