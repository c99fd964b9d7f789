"""Refusal of programs whose sizes are not numbers yet, for passes below the import."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.aten_sizes import SYMBOLS, declared_symbols
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.errors import InputError


def check_closed(module: ModuleOp) -> None:
    """Check that no function of a module has symbols.

    Raises:
        InputError: one has.
    """
    for function in functions(module):
        if symbols := declared_symbols(function.attributes.get(SYMBOLS)):
            options = " ".join(f"{name}=…" for name in symbols)
            raise InputError(
                f"the program has symbols without values: {', '.join(symbols)}",
                hint=f"specialize-shapes{{{options}}} first",
            )
