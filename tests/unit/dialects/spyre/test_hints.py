"""Hints as attributes: what is said is read back, and what is no hint is refused with its place."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.spyre.hints import HINT, Hint, HintError, checked, hint_of
from spyre_mlir.dialects.spyre.layout_choices import LayoutChoice
from spyre_mlir.errors import InputError
from spyre_mlir.hw.sticks import UNIT
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.universe import make_context

PROGRAM = """
func.func @main(%x: tensor<4x64xf16>) -> tensor<4x64xf16> {{
  %0 = aten.exp(%x) attributes {{spyre.hint = {hint}}} : (tensor<4x64xf16>) -> tensor<4x64xf16> loc("model.py":3:0)
  func.return %0 : tensor<4x64xf16>
}}
"""


def read(hint: str) -> Hint | None:
    """The hint of a text, after it was printed and read once more."""
    module = parse_module(PROGRAM.format(hint=hint), make_context())
    again = parse_module(module_text(module, locations=True), make_context())
    return next(hint_of(op) for op in again.walk() if HINT in op.attributes)


def test_a_hint_is_read_back() -> None:
    hint = Hint({"0": 4, "k": 2}, "lx", LayoutChoice("d1", 1, (1, 0)), op=3, rank=2)
    assert read(str(hint.attribute)) == hint
    assert read('{place = "hbm"}') == Hint(place="hbm")
    assert not Hint()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('"lx"', "a hint is a dictionary"),
        ("{tiles = 3 : i64}", "a hint has no part 'tiles'"),
        ('{place = "dram"}', "the place of a hint is lx or hbm, got 'dram'"),
        ("{division = 4 : i64}", "the division of a hint is slices by loop, got 4"),
        ('{division = {"0" = 0 : i64}}', "the slices of 0 are a whole number from 1 on, got 0"),
        ('{place = "lx", op = "4"}', "the op of a hint is a whole number, got '4'"),
        ("{layout = 1 : i64}", "the layout of a hint is a dictionary, got 1"),
        ("{layout = {rows = 1 : i64}}", "the layout of a hint has no part 'rows'"),
        ("{layout = {stick = -1 : i64}}", "a layout names dimension -1, expected one from 0 on"),
        ("{layout = {lanes = 1 : i64}}", "the lanes of a layout are the name of a loop, got 1"),
        ("{layout = {order = 1 : i64}}", "the order of a layout is a list of dimensions, got 1"),
        ('{layout = {stick = "rows"}}', "a dimension of a layout is a number or 'unit', got 'rows'"),
        ("{tile = 4 : i64}", "the tile of a hint is trips by loop, got 4"),
        ('{tile = {"0" = 0 : i64}}', "the trips over 0 are a whole number from 1 on, got 0"),
        ('{division = {m = "4"}}', "the slices of m are a whole number from 1 on, got '4'"),
    ],
)
def test_what_is_no_hint(text: str, message: str) -> None:
    with pytest.raises(HintError, match=message) as refused:
        read(text)
    assert refused.value.where == "aten.exp at model.py:3"
    assert isinstance(refused.value, InputError)


def test_keys_are_numbers_or_names() -> None:
    assert checked({"division": {0: 4, -1: 2, "k": 8}}) == Hint({"0": 4, "-1": 2, "k": 8})
    for key in (True, 1.5, None):
        with pytest.raises(HintError, match="a loop is the number of a dimension or a name"):
            checked({"division": {key: 4}})


def test_dimensions_of_a_layout_are_counted_from_the_end_of_a_known_rank() -> None:
    said = {"layout": {"stick": -1, "order": [-2, 0, "unit"]}}
    assert checked(said, rank=3).layout == LayoutChoice(stick=2, order=(1, 0, UNIT))
    assert checked(checked(said, rank=3).noted) == checked(said, rank=3)
    with pytest.raises(HintError, match="a layout names dimension 3, expected one from -3 to 2"):
        checked({"layout": {"stick": 3}}, rank=3)
