"""Element types: torch's dtypes in MLIR spelling."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from spyre_mlir.dialects.tensors import ELEMENTS

# Signed integers are signless, as ATen's arithmetic is two's complement; unsigned ones say so.
_NAMES: dict[torch.dtype, str] = {
    torch.bool: "i1",
    torch.int8: "i8",
    torch.int16: "i16",
    torch.int32: "i32",
    torch.int64: "i64",
    torch.uint8: "ui8",
    torch.uint16: "ui16",
    torch.uint32: "ui32",
    torch.uint64: "ui64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.float8_e4m3fn: "f8E4M3FN",
    torch.float8_e5m2: "f8E5M2",
    torch.float8_e4m3fnuz: "f8E4M3FNUZ",
    torch.float8_e5m2fnuz: "f8E5M2FNUZ",
}
ELEMENT_TYPES: dict[torch.dtype, Attribute] = {dtype: ELEMENTS[name] for dtype, name in _NAMES.items()}
DTYPES: dict[Attribute, torch.dtype] = {element: dtype for dtype, element in ELEMENT_TYPES.items()}


def tensor_type(value: torch.Tensor) -> TensorType[Attribute]:
    """Return the MLIR type of a tensor, whose dtype and static shape were checked before."""
    return TensorType(ELEMENT_TYPES[value.dtype], [int(extent) for extent in value.shape])


def describe(shape: Sequence[int | str], dtype: torch.dtype) -> str:
    """Return shape and dtype in the form of messages, e.g. ``float16[2, 64]``."""
    return f"{str(dtype).removeprefix('torch.')}[{', '.join(map(str, shape))}]"
