"""Arguments whose memory their new values take: of programs, and of functions that programs call."""

from __future__ import annotations

import pytest
from xdsl.dialects import func

from spyre_mlir.text.render import parse_module
from spyre_mlir.transforms.utils.overwritten import overwritten_arguments, written_arguments
from spyre_mlir.universe import make_context

T = "tensor<4xf16>"


def pairs(second: str, notes: str = "aten.reuses") -> dict[str, tuple[set[tuple[int, int]], bool]]:
    """What is found in a program that calls a function twice: with `%a`, then with an argument that is given."""
    module = parse_module(
        f"""func.func @main(%a: {T} {{aten.name = "a"}}, %b: {T} {{aten.name = "b"}}, %c: {T} {{aten.name = "c"}})
            -> ({T} {{{notes} = "a"}}, {T} {{{notes} = "b"}}) {{
          %0, %1 = func.call @layer(%c, %a) : ({T}, {T}) -> ({T}, {T})
          %2, %3 = func.call @layer(%0, {second}) : ({T}, {T}) -> ({T}, {T})
          func.return %1, %3 : {T}, {T}
        }}
        func.func private @layer(%x: {T}, %kept: {T}) -> ({T}, {T}) {{
          func.return %x, %kept : {T}, {T}
        }}""",
        make_context(),
        "main.mlir",
    )
    calls = [op for op in module.walk() if isinstance(op, func.CallOp)]
    assert written_arguments(calls[0]) == {(1, 1)}
    return {f.sym_name.data: (found, is_region) for f, found, is_region in overwritten_arguments(module)}


@pytest.mark.parametrize("notes", ["aten.reuses", "aten.mutates"])
def test_each_call_has_an_argument_of_its_own(notes: str) -> None:
    assert pairs("%b", notes) == {"main": ({(0, 0), (1, 1)}, False), "layer": ({(1, 1)}, True)}


@pytest.mark.parametrize("second", ["%c", "%0", "%a"])
def test_a_call_that_hands_over_something_else(second: str) -> None:
    assert pairs(second)["layer"] == (set(), True)
