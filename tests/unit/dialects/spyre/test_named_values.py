"""Values that are named: their texts, and the attributes that the texts give back."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr, f64
from xdsl.ir import Attribute
from xdsl.parser import Parser

from spyre_mlir.dialects.spyre.named_values import FirstOnesAttr, IotaAttr, ResampleAttr
from spyre_mlir.universe import make_context


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("#spyre.iota<0.5, -1.0>", IotaAttr(FloatAttr(0.5, f64), FloatAttr(-1.0, f64))),
        ("#spyre.first_ones<33>", FirstOnesAttr(IntegerAttr(33, 64))),
        (
            '#spyre.resample<"linear", 0.5, -0.25>',
            ResampleAttr(StringAttr("linear"), FloatAttr(0.5, f64), FloatAttr(-0.25, f64)),
        ),
    ],
)
def test_text_and_attribute_are_one(text: str, meant: Attribute) -> None:
    assert str(meant) == text
    assert Parser(make_context(), text).parse_attribute() == meant
