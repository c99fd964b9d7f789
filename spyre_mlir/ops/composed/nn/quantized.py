"""Eight-bit floats: conversions with a scale, and products whose scales follow.

Products run on DL16, which has all numbers of float8_e4m3fn and their products: the matrix unit's function on eight
bits takes its second operand packed from two rows, and what packs it is not public enough to be trusted.
"""

from __future__ import annotations

from typing import Any

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.formats import FP8_LARGEST
from spyre_mlir.ops.annotations import DType, Ints, Lanes, LanesList
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build

FP8 = "f8E4M3FN"
ONE_SCALE, BY_LINE = 0, 1  # torch's numbers of ways to scale; the others are by blocks


def _product(b: Build, left: Any, right: Any) -> Any:
    return b.call("mm", b.cast(left, "f32"), b.cast(right, "f32"))


def _checked_scale(b: Build, scale: Any, possible: tuple[tuple[int, ...], ...]) -> Any:
    """The scale in float32: one number, or one per row or column."""
    if b.shape(scale) not in ((), (1,), (1, 1), *possible):
        raise UnsupportedError(f"a scale of shape {b.shape(scale)}", hint="one number, or one per row or column")
    return b.cast(scale, "f32")


@ATEN.composed(aten=["_scaled_mm"], ulps=8)
def scaled_mm_of_aten(
    b: Build,
    self: Lanes,
    mat2: Lanes,
    scale_a: Lanes,
    scale_b: Lanes,
    bias: Lanes | None = None,
    scale_result: Lanes | None = None,
    *,
    out_dtype: DType | None = None,
    use_fast_accum: bool = False,
) -> Any:
    """The product of two matrices of eight-bit floats, times the scales of rows and columns, plus a bias."""
    if scale_result is not None:
        raise UnsupportedError("a scaled product with a scale of its result", hint="multiply the result instead")
    return _scaled(b, self, mat2, scale_a, scale_b, bias, out_dtype)


def _scaled(b: Build, left: Any, right: Any, scale_a: Any, scale_b: Any, bias: Any, element: str | None) -> Any:
    by_row = _checked_scale(b, scale_a, ((b.shape(left)[0], 1),))
    by_column = _checked_scale(b, scale_b, ((1, b.shape(right)[1]),))
    out = b.call("mul.Tensor", b.call("mul.Tensor", _product(b, left, right), by_row), by_column)
    out = out if bias is None else b.call("add.Tensor", out, b.cast(bias, "f32"))
    return b.cast(out, element or b.element(left))


@ATEN.composed(aten=["_scaled_mm_v2"], ulps=8)
def scaled_mm_by_recipes(
    b: Build,
    self: Lanes,
    mat2: Lanes,
    scale_a: LanesList,
    scale_b: LanesList,
    bias: Lanes | None = None,
    *,
    recipe_a: Ints,
    swizzle_a: Ints,
    recipe_b: Ints,
    swizzle_b: Ints,
    out_dtype: DType | None = None,
    contraction_dim: Ints = (),
    use_fast_accum: bool = False,
) -> Any:
    """As `_scaled_mm`; a recipe says if an operand has one scale, or one per row or column."""
    if any(recipe not in (ONE_SCALE, BY_LINE) for recipe in (*recipe_a, *recipe_b)):
        raise UnsupportedError("a product of blocks with scales of their own", hint="scale by tensor or by row")
    return _scaled(b, self, mat2, scale_a[0], scale_b[0], bias, out_dtype)


@ATEN.composed(aten=["spyre::scaled_mm"], ulps=8)
def scaled_mm(build: Build, a: Lanes, b: Lanes, *, out_dtype: DType) -> Any:
    """The product of two matrices of eight-bit floats; scales are products of their own."""
    return build.cast(_product(build, a, b), out_dtype)


@ATEN.composed(aten=["spyre::qfp8ch", "spyre::qfp8wt"], ulps=0)
def quantized(b: Build, input: Lanes) -> Any:
    """The nearest eight-bit floats; how they are packed is up to the compiler."""
    return b.cast(input, FP8)


@ATEN.composed(aten=["spyre::quantize_fp8_with_scale", "spyre::quantize_weight_fp8_with_scale"], ulps=0)
def quantized_with_scale(b: Build, input: Lanes, scale: Lanes) -> Any:
    """input / scale, limited to the numbers of the format, as eight-bit floats."""
    quotient = b.call("div.Tensor", input, b.cast(scale, like=input))
    return b.cast(b.call("clamp", quotient, min=-FP8_LARGEST, max=FP8_LARGEST), FP8)


@ATEN.composed(aten=["spyre::dequantize_fp8_with_scale"], ulps=1)
def dequantized(b: Build, input: Lanes, scale: Lanes) -> Any:
    """Eight-bit floats as float16, times a scale."""
    return b.call("mul.Tensor", b.cast(input, "f16"), b.cast(scale, "f16"))


# Samples are drawn in float32, which none of these ops gives or takes alone; their tests are in
# tests/end_to_end/device_numerics/test_small_floats.py.
