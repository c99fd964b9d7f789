"""Layouts as text: parts that may be left out, and what is refused."""

import pytest
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.test import TestOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from spyre_mlir.dialects.spyre.layout_choices import LAYOUT, LayoutAttr, LayoutChoice, LayoutError, layout_said, listed
from spyre_mlir.hw.sticks import UNIT, StickLayout
from spyre_mlir.universe import make_context


def parsed(text: str) -> LayoutChoice:
    attribute = Parser(make_context(), f"#spyre.layout<{text}>").parse_attribute()
    assert isinstance(attribute, LayoutAttr)
    return attribute.data


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("lanes n, stick 1, order [1, 0]", LayoutChoice("n", 1, (1, 0))),
        ("lanes none, stick unit, order [0, unit]", LayoutChoice("none", UNIT, (0, UNIT))),
        ("stick 0", LayoutChoice("", 0)),
        ("order [2, 0, 1]", LayoutChoice(order=(2, 0, 1))),
    ],
)
def test_text_and_attribute_say_the_same(text: str, choice: LayoutChoice) -> None:
    assert parsed(text) == choice
    assert str(LayoutAttr(choice)) == f"#spyre.layout<{text}>"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("stick 0, stick 1", "once each"),
        ("", "one of them at least"),
        ("lane n", "no part 'lane'"),
        ("stick -1", "Expected integer"),
        ("order [a]", "Expected integer"),
    ],
)
def test_other_text_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parsed(text)


def test_the_units_of_a_restickify_are_no_part_of_a_choice() -> None:
    assert LayoutChoice.of(StickLayout((UNIT, 1, 0), 0, (64, 3), 64), "m") == LayoutChoice("m", 0, (1, 0))
    assert LayoutChoice.of(StickLayout((1, UNIT, 0), UNIT, (4, 3))).order == (1, UNIT, 0)


def test_an_order_lists_every_dimension_once() -> None:
    published = StickLayout((1, 0), 1, (4, 64))
    assert LayoutChoice().in_order(published) == published
    assert LayoutChoice(order=(0, 1)).in_order(published).order == (0, 1)
    for order in ((0,), (0, 0), (0, 1, UNIT), (0, 1, 2)):
        with pytest.raises(LayoutError, match="list each dimension") as met:
            LayoutChoice(order=order).in_order(published)
        assert met.value.hint == "for example stick 1, order [1, 0]"


def test_the_attribute_of_an_op_is_a_layout() -> None:
    op = TestOp()
    assert layout_said(op) is None
    op.attributes[LAYOUT] = LayoutAttr(LayoutChoice("n"))
    assert layout_said(op) == LayoutChoice("n")
    op.attributes[LAYOUT] = StringAttr("n")
    with pytest.raises(LayoutError, match=r'spyre\.layout is "n"') as met:
        layout_said(op)
    assert met.value.where is not None and met.value.where.startswith("test.op")


def test_equal_choices_are_listed_once() -> None:
    assert listed([LayoutChoice("n", 1), LayoutChoice("m", 0), LayoutChoice("n", 1)]) == (
        "lanes n, stick 1; lanes m, stick 0"
    )
