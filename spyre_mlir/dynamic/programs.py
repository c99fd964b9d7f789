"""Programs with symbols, and the static programs for values of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from spyre_mlir.dialects.aten_sizes import SYMBOLS, SymbolRange, declared_symbols
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.ir.modules import copy_of, take_apart
from spyre_mlir.errors import InputError
from spyre_mlir.transforms.specialize_shapes import SpecializeShapesPass
from spyre_mlir.universe import make_context

if TYPE_CHECKING:
    from spyre_mlir.frontend import Program


def symbols_of(program: Program) -> dict[str, SymbolRange]:
    """Return the symbols of a program with their ranges."""
    main, *_ = functions(program.module)
    return declared_symbols(main.attributes.get(SYMBOLS))


def specialized(program: Program, sizes: Mapping[str, int]) -> Program:
    """Return the static program for these values of the symbols of a program.

    Raises:
        InputError: a symbol is unknown or has no value, or a value is out of range or violates a guard.
    """
    from spyre_mlir.frontend import static_program

    module = copy_of(program.module)
    SpecializeShapesPass(dict(sizes)).apply(make_context(), module)
    made = static_program(program, module, sizes)
    take_apart(module)
    if (in_calls := program.in_calls) is not None:
        return replace(made, in_calls=lambda: specialized(in_calls(), sizes))
    return made


def with_sizes(program: Program, sizes: Mapping[str, int], *, keep_symbols: bool = False) -> Program:
    """Return the program for these sizes; one with symbols stays as it is if that is allowed and no size is given.

    Raises:
        InputError: the program has no symbols, or other ones, or the sizes are not for it.
    """
    if program.origin is None:
        if sizes:
            hint = "export the model with dynamic_shapes"
            raise InputError(f"sizes are given for {', '.join(sizes)}, and the program has no symbols", hint=hint)
        return program
    return program if keep_symbols and not sizes else specialized(program, sizes)
