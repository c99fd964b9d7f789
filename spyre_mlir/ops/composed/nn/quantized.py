"""Eight-bit numbers: conversions of floats with a scale, and products, of floats with the scales that follow.

Products of floats run on DL16, which has all numbers of float8_e4m3fn and their products: the matrix unit's function on
eight bits takes its second operand packed from two rows, and what packs it is not public enough to be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.formats import FP8_LARGEST
from spyre_mlir.ops.annotations import DType, Ints
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.ignored_arguments import USE_FAST_ACCUM
from spyre_mlir.ops.value import Value

FP8 = "f8E4M3FN"
ONE_SCALE, BY_LINE = 0, 1  # torch's numbers of ways to scale; the others are by blocks
UNSWIZZLED = 0  # torch's number of the order of scales as they are
ROWS_BY_COLUMNS = (1, 0)  # dimensions that a product sums over


def _product(b: Build, left: Value, right: Value) -> Value:
    return b.call("mm", b.cast(left, "f32"), b.cast(right, "f32"))


def _checked_scale(b: Build, scale: Value, possible: tuple[tuple[int, ...], ...]) -> Value:
    """The scale in float32: one number, or one per row or column."""
    if scale.shape not in ((), (1,), (1, 1), *possible):
        raise UnsupportedError(f"a scale of shape {scale.shape}", hint="one number, or one per row or column")
    return b.cast(scale, "f32")


@ATEN.composed(aten=["_scaled_mm"], ulps=8, ignores=[USE_FAST_ACCUM])
def scaled_mm_of_aten(
    b: Build,
    self: Value,
    mat2: Value,
    scale_a: Value,
    scale_b: Value,
    bias: Value | None = None,
    scale_result: Value | None = None,
    *,
    out_dtype: DType | None = None,
) -> Value:
    """The product of two matrices of eight-bit floats, times the scales of rows and columns, plus a bias."""
    if scale_result is not None:
        raise UnsupportedError("a scaled product with a scale of its result", hint="multiply the result instead")
    return _scaled(b, self, mat2, scale_a, scale_b, bias, out_dtype)


def _scaled(
    b: Build, left: Value, right: Value, scale_a: Value, scale_b: Value, bias: Value | None, element: str | None
) -> Value:
    by_row = _checked_scale(b, scale_a, ((left.shape[0], 1),))
    by_column = _checked_scale(b, scale_b, ((1, right.shape[1]),))
    out = _product(b, left, right) * by_row * by_column
    out = out if bias is None else out + b.cast(bias, "f32")
    return b.cast(out, element or left.element)


@ATEN.composed(aten=["_scaled_mm_v2"], ulps=8, ignores=[USE_FAST_ACCUM])
def scaled_mm_by_recipes(
    b: Build,
    self: Value,
    mat2: Value,
    scale_a: Sequence[Value],
    scale_b: Sequence[Value],
    bias: Value | None = None,
    *,
    recipe_a: Ints,
    swizzle_a: Ints,
    recipe_b: Ints,
    swizzle_b: Ints,
    out_dtype: DType | None = None,
    contraction_dim: Ints = (),
) -> Value:
    """As `_scaled_mm`; a recipe says if an operand has one scale, or one per row or column."""
    if any(recipe not in (ONE_SCALE, BY_LINE) for recipe in (*recipe_a, *recipe_b)):
        raise UnsupportedError("a product of blocks with scales of their own", hint="scale by tensor or by row")
    if any(swizzle != UNSWIZZLED for swizzle in (*swizzle_a, *swizzle_b)):
        raise UnsupportedError("scales in swizzled order", hint="swizzle no scales: only those of blocks have an order")
    if tuple(dim % 2 for dim in contraction_dim) not in ((), ROWS_BY_COLUMNS):
        raise UnsupportedError(
            f"a product that sums over dimensions {tuple(contraction_dim)}",
            hint="sum over the last dimension of the first operand and the first one of the second: transpose operands",
        )
    return _scaled(b, self, mat2, scale_a[0], scale_b[0], bias, out_dtype)


@ATEN.composed(aten=["spyre::scaled_mm"], ulps=8)
def scaled_mm(build: Build, a: Value, b: Value, *, out_dtype: DType) -> Value:
    """The product of two matrices of eight-bit floats; scales are products of their own."""
    return build.cast(_product(build, a, b), out_dtype)


@ATEN.composed(aten=["_int_mm"], ulps=0)
def product_of_bytes(b: Build, self: Value, mat2: Value) -> Value:
    """The product of two matrices of eight-bit integers, as 32-bit integers."""
    return b.call("mm", b.cast(self, "i32"), b.cast(mat2, "i32"))


@ATEN.composed(aten=["spyre::qfp8ch", "spyre::qfp8wt"], ulps=0)
def quantized(b: Build, input: Value) -> Value:
    """The nearest eight-bit floats; how they are packed is up to the compiler."""
    return b.cast(input, FP8)


@ATEN.composed(aten=["spyre::quantize_fp8_with_scale", "spyre::quantize_weight_fp8_with_scale"], ulps=0)
def quantized_with_scale(b: Build, input: Value, scale: Value) -> Value:
    """input / scale, limited to the numbers of the format, as eight-bit floats."""
    quotient = input / b.cast(scale, like=input)
    return b.cast(quotient.clamp(min=-FP8_LARGEST, max=FP8_LARGEST), FP8)


@ATEN.composed(aten=["spyre::dequantize_fp8_with_scale"], ulps=1)
def dequantized(b: Build, input: Value, scale: Value) -> Value:
    """Eight-bit floats as float16, times a scale."""
    return b.cast(input, "f16") * b.cast(scale, "f16")


# Samples are drawn in float32, which none of these ops gives or takes alone; their tests are in
# tests/end_to_end/device_numerics, test_small_floats.py and test_small_integers.py.
