"""Nests that `canonicalize` drops, folds or frees of a destination, and those that it must keep."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import FloatAttr

from spyre_mlir.dialects.spyre.canonicalization.loop import writes_all
from spyre_mlir.dialects.spyre.loop import LoopConstantOp, NestOp
from tests.unit.dialects.texts import canonical, only, read

X = "tensor<4x4xf32>"
COPY = "{\n^bb0(%a: f32):\nspyre.loop.yield %a : f32\n}"


def program(*lines: str, result: str = X) -> str:
    """A function whose last line defines the result %out."""
    body = "\n".join(lines)
    return f"func.func @main(%x: {X}, %y: {X}) -> {result} {{\n{body}\nfunc.return %out : {result}\n}}"


def nests(*lines: str, result: str = X) -> list[NestOp]:
    return [op for op in canonical(program(*lines, result=result)).walk() if isinstance(op, NestOp)]


def copy(name: str, source: str, read_at: str = "m, n", attributes: str = "", into: str = "") -> str:
    said = f"{attributes} " if attributes else ""
    dest = f"into {into} " if into else ""
    return f"%{name} = spyre.loop.nest [m = 4, n = 4] ins({source}[{read_at}] : {X}) {dest}-> [m, n] : {X} {said}{COPY}"


SUM = (
    f"%s = spyre.loop.nest [m = 4, n = 4] ins(%x[m, n] : {X}, %y[m, n] : {X}) -> [m, n] : {X} "
    "wide {\n^bb0(%a: f32, %b: f32):\n%t = arith.addf %a, %b : f32\nspyre.loop.yield %t : f32\n}"
)


def test_identity_copies_go() -> None:
    assert nests(copy("out", "%x")) == []
    assert nests(copy("c", "%x"), copy("out", "%c")) == []
    assert nests(f"%e = spyre.loop.empty : {X}", copy("out", "%x", into="%e")) == []


@pytest.mark.parametrize(("attributes", "left"), [("", 2), ("wide", 1)])
def test_a_copy_that_rounds_stays(attributes: str, left: int) -> None:
    assert len(nests(SUM, copy("out", "%s", attributes=attributes))) == left
    assert len(nests(SUM.replace("wide", ""), copy("out", "%s", attributes=attributes))) == 1


def test_what_a_destination_keeps_may_need_rounding() -> None:
    part = (
        f"%d = spyre.loop.nest [m = 2, n = 4] ins(%x[m, n] : {X}) into %s -> [m, n] : {X} {COPY}",
        copy("out", "%d"),
    )
    assert len(nests(SUM, *part)) == 3
    assert len(nests(SUM.replace("wide", ""), *part)) == 2


@pytest.mark.parametrize(("constant", "left"), [("0.1", 1), ("0.5", 0)])
def test_a_constant_that_float32_lacks_is_rounded_by_a_copy(constant: str, left: int) -> None:
    assert len(nests(f"%c = spyre.loop.constant {constant} : f64 : {X}", copy("out", "%c"))) == left


def test_copies_to_other_places_stay() -> None:
    assert len(nests(copy("out", "%x", read_at="n, m"))) == 1
    folded = (
        f'%out = spyre.loop.nest [m = 4, n = 4] ins(%x[m, n] : {X}) -> [m] : tensor<4xf32> reduce "arith.addf" {COPY}'
    )
    assert len(nests(folded, result="tensor<4xf32>")) == 1


def test_a_destination_stays_if_something_of_it_remains() -> None:
    (nest,) = nests(copy("out", "%x", read_at="n, m", into="%y"))
    assert nest.dest is None
    (nest,) = nests(f"%out = spyre.loop.nest [m = 4] ins(%x[m, 0] : {X}) into %y -> [m, 1] : {X} {COPY}")
    assert nest.dest is not None


@pytest.mark.parametrize(
    ("space", "target", "result", "whole"),
    [
        ("[m = 4, n = 6]", "[m, n]", "4x6", True),
        ("[m = 4, n = 6]", "[n, m]", "6x4", True),
        ("[m = 4, n = 6]", "[m * 6 + n]", "24", True),
        ("[m = 4, n = 6]", "[m * 6 + n]", "25", False),
        ("[m = 4, n = 6]", "[m + n * 4]", "24", True),
        ("[m = 4, n = 6]", "[m * 7 + n]", "28", False),
        ("[m = 4, n = 6]", "[m + n]", "24", False),
        ("[m = 4]", "[m + 1]", "5", False),
        ("[m = 4]", "[m, 0]", "4x1", True),
        ("[m = 4]", "[m, 0]", "4x2", False),
        ("[m = 4]", "[m * 2]", "8", False),
        ("[m = 4]", "[m, m]", "4x4", False),
    ],
)
def test_which_nests_write_every_element(space: str, target: str, result: str, whole: bool) -> None:
    text = f"func.func @f(%x: tensor<1xf32>) {{\n%0 = spyre.loop.nest {space} ins(%x[0] : tensor<1xf32>) -> {target} : "
    nest = only(read(f"{text}tensor<{result}xf32> {COPY}\nfunc.return\n}}"), NestOp)
    assert writes_all(nest) is whole


def folded(op: str, left: str, right: str, attributes: str = "") -> float | None:
    """What a nest over two constants becomes; None if it stays."""
    said = f"{attributes} " if attributes else ""
    operands = "ins(%c[] : tensor<f32>, %d[n] : tensor<4xf32>)"
    module = canonical(
        program(
            f"%c = spyre.loop.constant {left} : f64 : tensor<f32>",
            f"%d = spyre.loop.constant {right} : f64 : tensor<4xf32>",
            f"%out = spyre.loop.nest [m = 4, n = 4] {operands} -> [m, n] : {X} {said}{{",
            f"^bb0(%a: f32, %b: f32):\n%t = arith.{op} %a, %b : f32\nspyre.loop.yield %t : f32\n}}",
        )
    )
    if any(isinstance(op, NestOp) for op in module.walk()):
        return None
    value = only(module, LoopConstantOp).value
    assert isinstance(value, FloatAttr)
    return value.value.data


def test_known_numbers_are_computed_in_float32() -> None:
    assert folded("addf", "0.5", "-0.25") == 0.25
    assert folded("mulf", "3.0", "0.5") == 1.5
    # 2^24 + 1 is no float32: it rounds to even.
    assert folded("addf", "16777216.0", "1.0") == 16777216.0
    assert folded("subf", "16777216.0", "-3.0") == 16777220.0
    assert str(folded("addf", "-0.0", "0.0")) == "0.0" and str(folded("addf", "-0.0", "-0.0")) == "-0.0"


@pytest.mark.parametrize(
    ("op", "left", "right", "attributes"),
    [
        ("divf", "1.0", "3.0", ""),
        ("maximumf", "1.0", "3.0", ""),
        ("addf", "0.1", "3.0", ""),
        ("mulf", "3.0e38", "2.0", ""),
        ("subf", "0x7FF0000000000000", "0x7FF0000000000000", ""),
        ("addf", "0x7FF8000000000000", "1.0", ""),
        ("addf", "0.5", "1.0", "wide"),
    ],
)
def test_other_numbers_are_left_to_the_program(op: str, left: str, right: str, attributes: str) -> None:
    assert folded(op, left, right, attributes) is None


def test_a_copy_of_a_known_number_is_known() -> None:
    constant = "%c = spyre.loop.constant 0.5 : f64 : tensor<f32>"
    broadcast = f"%out = spyre.loop.nest [m = 4, n = 4] ins(%c[] : tensor<f32>) -> [m, n] : {X} {COPY}"
    module = canonical(program(constant, broadcast))
    made = only(module, LoopConstantOp)
    assert str(made.result.type) == X and isinstance(made.value, FloatAttr) and made.value.value.data == 0.5
