"""Check of a program for one size that is to run in the place of programs for smaller sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.options import CompileOptions
from spyre_mlir.padding.growth import Pair, refusal
from spyre_mlir.padding.proof import prove
from spyre_mlir.pipeline import OFF, QUICKER_FORMS, lower
from spyre_mlir.universe import make_context

if TYPE_CHECKING:
    from spyre_mlir.frontend import Argument, Program

Array = NDArray[Any]

_LEVEL = "spyre.loop"


def check_bucket(larger: Program, size: int, smaller: Sequence[tuple[Program, int]], options: CompileOptions) -> None:
    """Check that a program gives callers of smaller sizes what their own programs would.

    Args:
        larger: the static program.
        size: its size.
        smaller: programs for sizes that callers may have, with these sizes, the least one first.
        options: for which the program is compiled.

    Raises:
        UnsupportedError: padding may reach a result, or the program depends on the size otherwise.
    """
    function = _nests(larger, options)
    for program, less in smaller:
        other = _nests(program, options)
        if len(larger.arguments) != len(program.arguments):
            raise refusal("the program has other constants for another length")
        if changed := [a.name for a, b in _pairs(larger, program) if a.mutated and a.shape != b.shape]:
            raise refusal(f"the program writes to '{changed[0]}', which is as long as the inputs")
        prove(Pair(function, size, other, less), _constants(function, larger, program), smaller[0][1])


def _nests(program: Program, options: CompileOptions) -> FuncOp:
    """The program's function at the loop level, with all layers in it, and in the form that every size has."""
    chosen = replace(options, regions=False).passes()
    chosen["decompose-aten"]["name_operators"] = True  # for errors
    passes = {**chosen, **dict.fromkeys(QUICKER_FORMS, OFF)}
    lowered = lower(program.module, make_context(options.spec), until=_LEVEL, options=passes)
    main, *_ = functions(lowered.modules[_LEVEL])
    return main


def _pairs(larger: Program, smaller: Program) -> zip[tuple[Argument, Argument]]:
    return zip(larger.arguments, smaller.arguments, strict=True)


def _constants(function: FuncOp, larger: Program, smaller: Program) -> dict[SSAValue, tuple[Array, Array]]:
    """The values of constants that depend on the size in both programs.

    Raises:
        UnsupportedError: one of them has no value yet.
    """
    from spyre_mlir.frontend import shown_as_numpy

    found: dict[SSAValue, tuple[Array, Array]] = {}
    for value, (argument, other) in zip(function.body.block.args, _pairs(larger, smaller), strict=True):
        if argument.kind != "constant":
            continue
        values = larger.values.get(argument.name), smaller.values.get(other.name)
        if values[0] is not None and values[1] is not None:
            found[value] = shown_as_numpy(values[0]), shown_as_numpy(values[1])
        elif argument.shape != other.shape:
            raise refusal(f"the constant '{argument.name}' has no value before weights are bound")
    return found
