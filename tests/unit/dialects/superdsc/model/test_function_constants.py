"""Constants from numbers: words worked out from the definitions of DLFloat16 and of IEEE 754."""

from __future__ import annotations

import math

import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Constant
from spyre_mlir.dialects.superdsc.model.function_constants import MASK, named_constant
from spyre_mlir.errors import EmitError


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (-1.0, 0xBE00),  # exponent 31 in six bits above nine of fraction
        (2.0, 0x4000),
        (0.75, 0x3D00),
        (0.0, 0),
        (math.inf, 0x7FFF),
    ],
)
def test_constants_are_dl16_codes(value: float, word: int) -> None:
    assert named_constant("c", value) == Constant("c", "SEN169_FP16", word)
    assert named_constant("c", value, "SENINT8") == Constant("c", "SENINT8", word)


@pytest.mark.parametrize(("value", "word"), [(1.0, 0x3F800000), (-2.0, 0xC0000000), (0.1, 0x3DCCCCCD)])
def test_constants_of_fp32_are_its_words(value: float, word: int) -> None:
    found = named_constant("eps", value, "IEEE_FP32")
    assert found == Constant("eps", "IEEE_FP32", word)
    assert type(found.bits) is int


def test_what_is_no_number_is_refused() -> None:
    with pytest.raises(EmitError) as caught:
        named_constant("eps", math.nan)
    assert caught.value.message == "constant eps is not a number"


def test_the_mask_is_called_as_the_page_says() -> None:
    assert MASK == "samv-maskvalue"
