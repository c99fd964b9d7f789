"""Notes on arguments."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from spyre_mlir.dialects.argument_notes import (
    NAME,
    NamedPlaces,
    counts_up,
    kind_of,
    new_values,
    note_of,
    places_attribute,
    places_of,
)
from spyre_mlir.dialects.aten_sizes import SizeAttr
from spyre_mlir.errors import InputError
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

T = "tensor<4xf32>"


def function(arguments: str) -> FuncOp:
    module = parse_module(f"func.func @main({arguments}) {{ func.return }}", make_context(), "main.mlir")
    return next(op for op in module.ops if isinstance(op, FuncOp))


def test_kinds_and_names() -> None:
    main = function(f'%x: {T} {{aten.name = "x", aten.kind = "input"}}, %y: {T}')
    assert (kind_of(main, 0), kind_of(main, 1)) == ("input", None)
    assert note_of(main, 0, NAME) == StringAttr("x")


def test_a_note_says_that_a_vector_counts_up() -> None:
    main = function("%x: tensor<3xi64> {aten.counts}, %y: tensor<3xi64>")
    assert [counts_up(argument) for argument in main.body.block.args] == [True, False]
    module = parse_module(f"func.func @f(%x: {T}) {{\n%0 = aten.neg(%x) : ({T}) -> {T}\nfunc.return }}", make_context())
    assert not any(counts_up(result) for op in module.walk() for result in op.results)


def test_a_function_without_notes() -> None:
    assert kind_of(function(f"%x: {T}"), 0) is None


def test_new_values_of_arguments() -> None:
    text = f"""func.func @main(%x: {T} {{aten.name = "x"}}, %y: {T} {{aten.name = "y"}}, %z: {T})
        -> ({T} {{aten.name = "out"}}, {T} {{aten.mutates = "y"}}, {T} {{aten.mutates = "gone"}}) {{
        func.return %x, %x, %x : {T}, {T}, {T}
    }}"""
    main = next(op for op in parse_module(text, make_context(), "main.mlir").ops if isinstance(op, FuncOp))
    assert new_values(main) == {1: 1}
    assert new_values(function(f"%x: {T}")) == {}


GATHER = NamedPlaces("aten.gather", "model.py:12 (layers.0)", 5)
SYMBOLIC = NamedPlaces("aten.take", "", SizeAttr("4 * s0"), from_end=1, plus=-2, but=-100)


def noted(note: Attribute) -> FuncOp:
    text = f"func.func @main(%i: tensor<3xi64> {{aten.places = {note}}}, %x: tensor<3xf32>) {{ func.return }}"
    module = parse_module(text, make_context(), "main.mlir")
    return next(op for op in module.ops if isinstance(op, FuncOp))


def test_what_is_said_reads_back() -> None:
    main = noted(places_attribute([GATHER, SYMBOLIC]))
    assert places_of(main, 0) == [GATHER, SYMBOLIC]
    assert places_of(main, 1) == []


@pytest.mark.parametrize(
    ("asked", "limits"),
    [
        (NamedPlaces("", "", 5), (0, 4)),
        (NamedPlaces("", "", 5, from_end=1), (-5, 4)),
        (NamedPlaces("", "", 5, from_end=2, plus=3), (-13, 1)),
        (NamedPlaces("", "", 0), (0, -1)),
        (SYMBOLIC, (-26, 29)),
    ],
)
def test_limits(asked: NamedPlaces, limits: tuple[int, int]) -> None:
    assert asked.limits({"s0": 7}) == limits


def test_equal_rules_of_different_operators() -> None:
    assert GATHER.rule == NamedPlaces("aten.scatter.src", "model.py:13", 5).rule
    assert GATHER.rule != NamedPlaces("aten.gather", "model.py:12 (layers.0)", 5, from_end=1).rule


@pytest.mark.parametrize(
    "note",
    [
        StringAttr("aten.gather"),
        ArrayAttr([StringAttr("aten.gather")]),
        places_attribute([NamedPlaces("aten.gather", "", "five")]),  # pyright: ignore[reportArgumentType]
    ],
    ids=str,
)
def test_notes_of_another_form(note: Attribute) -> None:
    with pytest.raises(InputError, match=r"an entry of aten.places is .*"):
        places_of(noted(note), 0)
