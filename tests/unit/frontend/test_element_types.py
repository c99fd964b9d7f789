"""Element types of torch, against MLIR's own types and the words of messages."""

from __future__ import annotations

import pytest
import torch
from xdsl.dialects.builtin import TensorType, bf16, f16, f32, f64, i1, i8, i16, i32, i64

from spyre_mlir.frontend.element_types import ELEMENT_TYPES, describe, tensor_type

SIGNLESS_AND_FLOATS = {
    torch.bool: i1,
    torch.int8: i8,
    torch.int16: i16,
    torch.int32: i32,
    torch.int64: i64,
    torch.float16: f16,
    torch.bfloat16: bf16,
    torch.float32: f32,
    torch.float64: f64,
}


@pytest.mark.parametrize("dtype", SIGNLESS_AND_FLOATS)
def test_signed_integers_are_signless_and_floats_are_floats(dtype: torch.dtype) -> None:
    assert ELEMENT_TYPES[dtype] == SIGNLESS_AND_FLOATS[dtype]


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (torch.uint8, "ui8"),
        (torch.uint16, "ui16"),
        (torch.uint32, "ui32"),
        (torch.uint64, "ui64"),
        (torch.float8_e4m3fn, "f8E4M3FN"),
        (torch.float8_e5m2, "f8E5M2"),
        (torch.float8_e4m3fnuz, "f8E4M3FNUZ"),
        (torch.float8_e5m2fnuz, "f8E5M2FNUZ"),
    ],
)
def test_unsigned_integers_and_eight_bit_floats_are_spelled_as_in_mlir(dtype: torch.dtype, text: str) -> None:
    assert text in str(ELEMENT_TYPES[dtype])
    assert text in str(tensor_type(torch.empty(2, dtype=dtype)))


def test_every_dtype_has_a_type_of_its_own() -> None:
    assert len(set(ELEMENT_TYPES.values())) == len(ELEMENT_TYPES) == 17


def test_a_tensor_has_its_shape_and_element_type() -> None:
    assert tensor_type(torch.empty(2, 0, 3, dtype=torch.int16)) == TensorType(i16, [2, 0, 3])
    assert tensor_type(torch.tensor(1.0)) == TensorType(f32, [])


def test_messages_show_dtype_and_shape() -> None:
    assert describe((2, 64), torch.float16) == "float16[2, 64]"
    assert describe((), torch.bool) == "bool[]"
