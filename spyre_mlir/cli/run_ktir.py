"""KTIR programs in `spyre-run`: arrays behind pointers are arguments, arrays that stores reach are results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from spyre_mlir.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.ir import Attribute

    from spyre_mlir.machine.ktdp import KtirArgument

    Array = NDArray[Any]


def takes(module: ModuleOp) -> dict[str, Attribute]:
    """Return name and type of each input of a KTIR program; an array that is written before it is read is not one.

    Raises:
        InputError: it is not known which functions to run.
    """
    from xdsl.dialects.builtin import TensorType

    return {
        one.name: one.element if one.shape is None else TensorType(one.element, one.shape)
        for one in _first_uses(module)
        if one.read or not one.written
    }


def run(module: ModuleOp, given: Sequence[Array]) -> dict[str, Array]:
    """Run a KTIR program, its functions one after another on the same arrays.

    Args:
        module: the program.
        given: values in the order of `takes`.

    Returns:
        By name, the arrays that the program writes.

    Raises:
        InputError: numbers of a value are not of the kind that the program takes, or an array's extents are unknown.
        MachineFault: the program misbehaves.
    """
    import numpy as np

    from spyre_mlir.machine.ktdp import arguments, kernels, run_ktir

    arrays = _arrays(module, dict(zip(takes(module), given, strict=True)))
    blank = arrays.keys() - takes(module).keys()
    written: dict[str, None] = {}
    for function in kernels(module):
        described = arguments(function)
        mine = {one.name: arrays[one.name] for one in described}
        arrays |= run_ktir(module, function.sym_name.data, mine, blank=[name for name in mine if name in blank])
        blank -= mine.keys()
        written |= dict.fromkeys(one.name for one in described if one.written)
    return {name: np.asarray(arrays[name]) for name in written}


def _arrays(module: ModuleOp, values: Mapping[str, Array]) -> dict[str, Array | int]:
    import numpy as np

    from spyre_mlir.machine.ktdp.values import dtype_of

    arrays: dict[str, Array | int] = {}
    for one in _first_uses(module):
        if one.name in values:
            arrays[one.name] = _converted(one, values[one.name])
        elif one.shape is None:
            raise InputError(
                f"the extents of '{one.name}' are computed by the program", hint="run it with spyre_mlir.machine.ktdp"
            )
        else:
            arrays[one.name] = np.zeros(one.shape, dtype_of(one.element))
    return arrays


def _first_uses(module: ModuleOp) -> list[KtirArgument]:
    """Every argument as the first function that takes it does."""
    from spyre_mlir.machine.ktdp import arguments, kernels

    found: dict[str, KtirArgument] = {}
    for function in kernels(module):
        for one in arguments(function):
            first = found.setdefault(one.name, one)
            if prod(first.shape or ()) < prod(one.shape or ()):  # a view of a part; another tells of the whole
                found[one.name] = replace(first, shape=one.shape)
    return list(found.values())


def _converted(argument: KtirArgument, value: Array) -> Array | int:
    """The value in the numbers of the program, if both are whole or both are not."""
    from spyre_mlir.machine.ktdp.values import dtype_of

    wanted = dtype_of(argument.element)
    if (value.dtype.kind in "iub") != (wanted.kind in "iub"):
        raise InputError(
            f"the argument '{argument.name}' has elements of {wanted}, got {value.dtype}", hint="convert the array"
        )
    if argument.shape is not None and value.shape != argument.shape:
        raise InputError(f"the argument '{argument.name}' has extents {argument.shape}, got {value.shape}")
    return value.astype(wanted) if value.ndim else int(value)
