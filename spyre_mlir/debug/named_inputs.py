"""Inputs of a program by name: those that are given, those stored with it, and random ones for the rest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerType, ModuleOp, StringAttr, bf16, f16, f32, i1
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.traits import SymbolTable

from spyre_mlir.choices import RANDOM_INTEGERS_BELOW
from spyre_mlir.dialects.argument_notes import places_of
from spyre_mlir.dialects.tensors import as_tensor_type, integer_bits, is_unsigned
from spyre_mlir.errors import InputError
from spyre_mlir.machine.levels.named_places import check_places
from spyre_mlir.machine.levels.run import find_function

Array = NDArray[Any]

_FLOATS: Mapping[Attribute, np.dtype[Any]] = {
    f32: np.dtype(np.float32),
    f16: np.dtype(np.float16),
    bf16: np.dtype(ml_dtypes.bfloat16),
}
_NO_LIMITS: Mapping[str, tuple[int, int]] = {}


def argument_names(module: ModuleOp, which: str, count: int | None = None) -> list[str]:
    """Names of main's arguments or results: their ``aten.name``, else as the text calls them, else a number."""
    function = find_function(module, "main")
    arguments = which == "arg_attrs"
    types = function.function_type.inputs if arguments else function.function_type.outputs
    hints = [argument.name_hint for argument in function.args] if arguments else []
    attributes = getattr(function, which)
    stem, names = ("arg" if arguments else "result"), list[str]()
    for number in range(len(types.data) if count is None else count):
        name = None if attributes is None else attributes.data[number].data.get("aten.name")
        hint = hints[number] if number < len(hints) and hints.count(hints[number]) == 1 else None
        names.append(name.data if isinstance(name, StringAttr) else hint or f"{stem}{number}")
    return names


def bound_inputs(
    types: Sequence[tuple[str, Attribute]],
    given: Mapping[str, Array],
    stored: Mapping[str, Array],
    held: Collection[str],
    seed: int,
    limits: Mapping[str, tuple[int, int]] = _NO_LIMITS,
) -> list[Array | None]:
    """Return a value per argument, in order.

    Args:
        types: names and types of the arguments.
        given: values of the caller.
        stored: values that came with the program.
        held: arguments whose value the program has as the device has it; None stands for them.
        seed: of random values, for arguments without another.
        limits: the least and the largest random integer of arguments that are indices; see `place_limits`.

    Raises:
        InputError: a value is of no argument, or has numbers that the argument has no place for, or an argument's shape
            is not known.
    """
    check_names(given, [name for name, _ in types])
    random = np.random.default_rng(seed)
    bound: list[Array | None] = []
    for name, kind in types:
        value = converted(given[name], kind, name) if name in given else None
        if value is None and name not in held:
            value = stored.get(name)
            value = random_argument(kind, random, name, limits.get(name)) if value is None else value
        bound.append(value)
    return bound


def converted(value: Array, kind: Attribute, name: str) -> Array:
    """Return the numbers of a caller as an argument has them: floats rounded to its type, and integers as floats.

    Floats for an argument of integers stay as they are, for the program to refuse.

    Args:
        value: the numbers.
        kind: the type of the argument.
        name: of the argument.

    Raises:
        InputError: a number is beyond the type.
    """
    tensor = as_tensor_type(kind)
    if tensor is None:
        return value
    element = tensor.get_element_type()
    if element in _FLOATS and value.dtype.kind in "biuf":
        if value.dtype == _FLOATS[element]:
            return value
        with np.errstate(over="ignore"):
            made = value.astype(_FLOATS[element])
        _check_beyond(np.isfinite(value) & ~np.isfinite(made.astype(np.float32)), value, element, name)
        return made.astype(np.float32) if element == bf16 else made
    if (bits := integer_bits(element)) > 1 and value.dtype.kind in "iu":
        signed = not is_unsigned(element)
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
        _check_beyond((value < low) | (value > high), value, element, name)
    return value


def _check_beyond(beyond: NDArray[np.bool_], value: Array, element: Attribute, name: str) -> None:
    if beyond.any():
        at = tuple(int(n) for n in np.argwhere(beyond)[0])
        raise InputError(
            f"the input '{name}' holds {value[at]} at {list(at)}, which is beyond {element}",
            hint="convert it before numpy.save, as the model's caller would",
        )


def check_names(given: Iterable[str], names: Sequence[str]) -> None:
    """Check that names are of arguments.

    Raises:
        InputError: one is not.
    """
    if unknown := [name for name in given if name not in names]:
        raise InputError(f"the program has no argument '{unknown[0]}'", hint=f"its arguments are {', '.join(names)}")


def argument_types(module: ModuleOp) -> list[tuple[str, Attribute]]:
    """Return names and types of main's arguments."""
    types: Sequence[Attribute] = find_function(module, "main").function_type.inputs.data
    return list(zip(argument_names(module, "arg_attrs"), types, strict=True))


def place_limits(module: ModuleOp) -> dict[str, tuple[int, int]]:
    """Return the least and the largest random integer of each argument of main that is an index of a tensor.

    A module without a main, such as a KTIR program, has none.
    """
    function, found = SymbolTable.lookup_symbol(module, "main"), dict[str, tuple[int, int]]()
    if not isinstance(function, FuncOp):
        return found
    for number, name in enumerate(argument_names(module, "arg_attrs")):
        places = [one for one in places_of(function, number) if isinstance(one.size, int)]
        asked = [one.limits({}) for one in places if one.by is None]
        low = max((0, *(least for least, _ in asked)))
        high = min((low + RANDOM_INTEGERS_BELOW - 1, *(most for _, most in asked)))
        while low < high and not all(_are_named(function, {number: n}) for n in (low, high)):
            high = (low + high) // 2  # indices are computed from them, which rise with them as a rule
        if places and low <= high:
            found[name] = low, high
    _limit_together(function, argument_names(module, "arg_attrs"), found)
    return found


def _limit_together(function: FuncOp, names: Sequence[str], found: dict[str, tuple[int, int]]) -> None:
    """Lowers the limits of arguments that indices are computed from together, until the largest make indices too."""
    groups = [(number, asked) for number in range(len(names)) for asked in places_of(function, number) if asked.others]
    for number, asked in groups:
        together = [number, *(names.index(name) for name in asked.others if name in names)]
        limits = {n: found.get(names[n], (0, RANDOM_INTEGERS_BELOW - 1)) for n in together if _has_indices(function, n)}
        while any(low < high for low, high in limits.values()):
            if _are_named(function, {n: high for n, (_, high) in limits.items()}):
                break
            limits = {n: (low, (low + high) // 2) for n, (low, high) in limits.items()}
        found |= {names[n]: pair for n, pair in limits.items()}


def _has_indices(function: FuncOp, number: int) -> bool:
    tensor = as_tensor_type(function.function_type.inputs.data[number])
    return tensor is not None and tensor.has_static_shape() and integer_bits(tensor.get_element_type()) > 1


def _are_named(function: FuncOp, integers: Mapping[int, int]) -> bool:
    """Return whether integers, each everywhere in its argument, make indices of entries that are there."""

    def values(number: int) -> Array | None:
        tensor = as_tensor_type(function.function_type.inputs.data[number])
        if number not in integers or tensor is None or not _has_indices(function, number):
            return None
        return np.full(tensor.get_shape(), integers[number], np.int64)

    try:
        check_places(function, values)
    except InputError:
        return False
    return True


def random_argument(
    kind: Attribute, random: np.random.Generator, name: str, limits: tuple[int, int] | None = None
) -> Array:
    """Return a random value for an argument: floats uniform in [-1, 1), integers from 0 to 9 or within limits.

    Raises:
        InputError: its shape is not known.
    """
    tensor = as_tensor_type(kind)
    if tensor is None or not tensor.has_static_shape():
        raise InputError(
            f"the argument '{name}' is {kind}, only tensors of known shape can be made up", hint="run a whole program"
        )
    shape, element = tensor.get_shape(), tensor.get_element_type()
    if not isinstance(element, IntegerType):
        return random.uniform(-1.0, 1.0, shape)
    if element == i1:
        return random.integers(0, 2, shape).astype(np.bool_)
    low, high = (0, RANDOM_INTEGERS_BELOW - 1) if limits is None else limits
    return random.integers(low, high + 1, shape)


__all__ = [
    "argument_names",
    "argument_types",
    "bound_inputs",
    "check_names",
    "converted",
    "place_limits",
    "random_argument",
]
