"""The word at a place, documentation of ops, and definitions of names; `|` marks the place in a text."""

from __future__ import annotations

import pytest

from spyre_mlir.cli.language.navigation import definition_of, hover_text, shown_definition, word_at
from spyre_mlir.universe import make_context

TEXT = """\
!t = tensor<4xf32>
#map = affine_map<(d0) -> (d0)>
func.func private @callee(%x: !t) -> !t {
  func.return %x : !t
}
func.func @main(%x: tensor<4xf32>, %arg_1: !t) -> tensor<4xf32> {
  %0 = aten.neg(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %a, %b = "test.pair"(%0) {map = #map} : (!t) -> (!t, !t)
  %1 = spyre.loop.nest [i = 4] ins(%0[i] : tensor<4xf32>) -> [i] : tensor<4xf32> {
  ^bb0(%y: f32):
    spyre.loop.yield %y : f32
  }
  %2 = func.call @callee(%b) : (!t) -> !t
  cf.br ^bb1(%1 : tensor<4xf32>)
^bb1(%z: tensor<4xf32>):
  func.return %z : tensor<4xf32>
}
"""


def place_of(part: str, text: str = TEXT) -> tuple[int, int]:
    """Line and column of the mark in a part of the text."""
    at = text.index(part.replace("|", "")) + part.index("|")
    return text.count("\n", 0, at), at - (text.rfind("\n", 0, at) + 1)


@pytest.mark.parametrize(
    ("part", "word"),
    [
        ("= aten.n|eg", "aten.neg"),
        ("= |aten.neg", "aten.neg"),
        ("aten.neg|(", "aten.neg"),
        ("(|%x) :", "%x"),
        ("call @cal|lee", "@callee"),
        ("map = #m|ap}", "#map"),
        ("br ^b|b1", "^bb1"),
        (" |= aten", None),
        ("%arg|_1", "%arg_1"),
    ],
)
def test_words(part: str, word: str | None) -> None:
    assert word_at(TEXT, *place_of(part)) == word


def test_no_word_behind_the_text() -> None:
    assert word_at(TEXT, 99, 0) is None
    assert word_at("abc", 0, 9) is None


@pytest.mark.parametrize(
    ("part", "definition"),
    [
        ("neg(%|x)", "main(|%x"),
        ("return %|x", "callee(|%x"),
        ("ins(%|0", "  |%0 = aten.neg"),
        ("callee(%|b)", "%a, |%b = "),
        ("yield %|y", "bb0(|%y"),
        ("return %|z", "bb1(|%z"),
        ("%|0 = aten.neg", "  |%0 = aten.neg"),
        ("call @|callee", "private |@callee"),
        ("@main(%x: tensor<4xf32>, %arg_1: !|t", "|!t = "),
        ("= #m|ap}", "|#map = "),
        ("br ^|bb1", "|^bb1(%z"),
    ],
)
def test_definitions(part: str, definition: str) -> None:
    found = definition_of(TEXT, *place_of(part))
    assert found is not None
    assert found[:2] == place_of(definition)
    word = word_at(TEXT, *place_of(part))
    assert word is not None
    assert found[2] - found[1] == len(word)


@pytest.mark.parametrize("text", ["%9|", "@nobody|", "aten.neg|", "%|", "!u|", "^bb9|", " |"])
def test_names_without_a_definition(text: str) -> None:
    assert definition_of(text.replace("|", ""), 0, text.index("|")) is None


def test_hover_shows_the_documentation_of_an_op() -> None:
    text = hover_text("spyre.loop.nest", make_context())
    assert text is not None
    assert text.startswith("**spyre.loop.nest**\n\nA loop nest")
    assert "C1: every map stays inside its tensor" in text
    assert "operands: `inputs`, `dest`" in text
    assert "results: `result`" in text
    assert hover_text('"aten.relu"', make_context()) == (
        "**aten.relu**\n\nThe element if positive, else 0.\n\narguments: `self` tensor\n\n"
        "hardware function: `relufwd` on sfp, DL16 and FP32"
    )


def test_hover_over_an_aten_op_has_the_arguments_of_its_schema_and_what_becomes_of_it() -> None:
    text = hover_text("aten.add.Tensor", make_context()) or ""
    assert "arguments: `self` tensor, `other` tensor, `alpha` number = 1\n\nhardware function: `add` on sfp" in text
    text = hover_text("aten.softmax.int", make_context()) or ""
    assert "`dim` int" in text and text.endswith("a composition: `decompose-aten` rewrites it")


@pytest.mark.parametrize(
    ("part", "shown"),
    [
        ("ins(%|0", "%0 = aten.neg(%x) : (tensor<4xf32>) -> tensor<4xf32>"),
        ("yield %|y", "^bb0(%y: f32):"),
        ("call @|callee", "func.func private @callee(%x: !t) -> !t {"),
        ("%arg_1: !|t", "!t = tensor<4xf32>"),
        ("= #m|ap}", "#map = affine_map<(d0) -> (d0)>"),
        ("br ^|bb1", "^bb1(%z: tensor<4xf32>):"),
    ],
)
def test_hover_over_a_name_shows_the_line_that_defines_it(part: str, shown: str) -> None:
    assert shown_definition(TEXT, *place_of(part)) == f"```mlir\n{shown}\n```"


def test_a_definition_that_is_there_already_or_nowhere_is_not_shown_and_a_long_one_is_cut() -> None:
    assert shown_definition(TEXT, *place_of("%|0 = aten.neg")) is None
    assert shown_definition("aten.neg(%u)", 0, 10) is None
    long = f"%x = {'a' * 500}\n%y = f(%x)"
    assert (shown_definition(long, 1, 8) or "").endswith(f"{'a' * 395} …\n```")


def test_hover_leaves_out_signatures() -> None:
    assert hover_text("func.return", make_context()) == "**func.return**\n\noperands: `arguments`"


@pytest.mark.parametrize("word", ["%x", "tensor", "aten.nothing_of_this_name", "4.5"])
def test_other_words_have_no_documentation(word: str) -> None:
    assert hover_text(word, make_context()) is None
