"""Element types: torch's dtypes as MLIR spells them."""

from __future__ import annotations

import torch
from xdsl.dialects.builtin import (
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    IntegerType,
    Signedness,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute

# Signed integers are signless, as ATen's arithmetic is two's complement; unsigned ones say so.
ELEMENT_TYPES: dict[torch.dtype, Attribute] = {
    torch.bool: i1,
    torch.int8: i8,
    torch.int16: i16,
    torch.int32: i32,
    torch.int64: i64,
    torch.uint8: IntegerType(8, Signedness.UNSIGNED),
    torch.uint16: IntegerType(16, Signedness.UNSIGNED),
    torch.uint32: IntegerType(32, Signedness.UNSIGNED),
    torch.uint64: IntegerType(64, Signedness.UNSIGNED),
    torch.float16: f16,
    torch.bfloat16: bf16,
    torch.float32: f32,
    torch.float64: f64,
    torch.float8_e4m3fn: Float8E4M3FNType(),
    torch.float8_e5m2: Float8E5M2Type(),
    torch.float8_e4m3fnuz: Float8E4M3FNUZType(),
    torch.float8_e5m2fnuz: Float8E5M2FNUZType(),
}


def tensor_type(value: torch.Tensor) -> TensorType[Attribute]:
    """The MLIR type of a tensor, whose dtype and static shape were checked before."""
    return TensorType(ELEMENT_TYPES[value.dtype], [int(extent) for extent in value.shape])


def describe(shape: tuple[int, ...], dtype: torch.dtype) -> str:
    """Shape and dtype as messages show them, e.g. ``float16[2, 64]``."""
    return f"{str(dtype).removeprefix('torch.')}[{', '.join(map(str, shape))}]"
