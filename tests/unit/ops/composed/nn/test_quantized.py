"""Eight-bit numbers: conversions against ml_dtypes, and products with the scales of rows and columns."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.composed.nn import quantized
from tests.unit.ops.evaluation import NAN, budgets, calling, defaults, result, results, same, types

FP8 = ml_dtypes.float8_e4m3fn
A = np.array([[1.0, -2.0, 0.5], [3.0, 4.0, -0.25]]).astype(FP8)
W = np.array([[2.0, 1.0], [-1.0, 6.0], [8.0, 0.0]]).astype(FP8)
PRODUCT = A.astype(np.float64) @ W.astype(np.float64)
ROWS, COLUMNS = np.array([[0.5], [-3.0]]), np.array([[2.0, 0.25]])
BIAS = np.array([1.0, -10.0])
RECIPES = {"recipe_a": (1,), "swizzle_a": (0,), "recipe_b": (0,), "swizzle_b": (0,)}


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_one_scale_for_each_operand(shape: tuple[int, ...]) -> None:
    scales = np.full(shape, 3.0), np.full(shape, -0.5)
    same(result("_scaled_mm", A, W, *scales, out_dtype="f32", use_fast_accum=True), PRODUCT * -1.5)


def test_scales_of_rows_and_columns() -> None:
    wanted = PRODUCT * ROWS * COLUMNS
    same(result("_scaled_mm", A, W, ROWS, COLUMNS, out_dtype="f32"), wanted)
    same(result("_scaled_mm", A, W, ROWS, COLUMNS, BIAS, out_dtype="f32"), wanted + BIAS)
    same(result("_scaled_mm_v2", A, W, [ROWS], [COLUMNS], BIAS, **RECIPES, out_dtype="f32"), wanted + BIAS)


def test_products_of_bytes_are_wider_than_bytes() -> None:
    left, right = np.array([[127, -128], [-128, 0]], np.int8), np.array([[127], [-128]], np.int8)
    same(result("_int_mm", left, right), [[32_513], [-16_256]])
    assert types(calling("_int_mm"), left, right) == [((2, 1), "i32")]


@pytest.mark.parametrize(("given", "element"), [({"out_dtype": "f16"}, "f16"), ({}, "f8E4M3FN")])
def test_the_element_type_of_a_product(given: dict[str, Any], element: str) -> None:
    half = BIAS.astype(np.float16)
    assert types(calling("_scaled_mm", **given), A, W, ROWS, COLUMNS, half) == [((2, 2), element)]
    assert types(calling("_scaled_mm_v2", **RECIPES, **given), A, W, [ROWS], [COLUMNS], half) == [((2, 2), element)]


@pytest.mark.parametrize(
    ("scales", "shape"),
    [
        ((COLUMNS.T[:1].repeat(3, 0), COLUMNS), (3, 1)),
        ((ROWS.T, COLUMNS), (1, 2)),
        ((ROWS, COLUMNS.T), (2, 1)),
        ((ROWS, np.ones((1, 3))), (1, 3)),
        ((np.ones(2), COLUMNS), (2,)),
    ],
)
def test_scales_of_other_shapes_are_refused(scales: tuple[np.ndarray, ...], shape: tuple[int, ...]) -> None:
    with pytest.raises(UnsupportedError) as caught:
        results("_scaled_mm", A, W, *scales)
    assert f"a scale of shape {shape}" in str(caught.value)
    assert "one number, or one per row or column" in str(caught.value)


def test_a_scale_of_the_result_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="a scaled product with a scale of its result") as caught:
        results("_scaled_mm", A, W, ROWS, COLUMNS, None, np.ones(()))
    assert "multiply the result instead" in str(caught.value)


@pytest.mark.parametrize("recipes", [{"recipe_a": (2,)}, {"recipe_b": (1, 3)}, {"recipe_a": (-1,)}])
def test_scales_of_blocks_are_refused(recipes: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedError, match="a product of blocks with scales of their own") as caught:
        results("_scaled_mm_v2", A, W, [ROWS], [COLUMNS], **(RECIPES | recipes))
    assert "scale by tensor or by row" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"swizzle_a": (1,)}, "scales in swizzled order"),
        ({"swizzle_b": (0, 1)}, "scales in swizzled order"),
        ({"contraction_dim": (0, 1)}, r"a product that sums over dimensions \(0, 1\)"),
        ({"contraction_dim": (1, -1)}, r"a product that sums over dimensions \(1, -1\)"),
    ],
)
def test_what_changes_a_product_is_not_ignored(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        results("_scaled_mm_v2", A, W, [ROWS], [COLUMNS], **(RECIPES | given))


@pytest.mark.parametrize("dims", [(), (1, 0), (-1, -2)])
def test_a_product_that_sums_over_the_dimensions_of_matmul(dims: tuple[int, ...]) -> None:
    wanted = PRODUCT * ROWS * COLUMNS
    same(result("_scaled_mm_v2", A, W, [ROWS], [COLUMNS], **RECIPES, contraction_dim=dims, out_dtype="f32"), wanted)


def test_a_product_without_scales() -> None:
    same(result("spyre::scaled_mm", A, W, out_dtype="f16"), PRODUCT)
    assert types(calling("spyre::scaled_mm", out_dtype="f16"), A, W) == [((2, 2), "f16")]


NUMBERS = np.array([0.3, -1.7, 17.0, 19.0, 1e-4, 440.0, -460.0, 1000.0, -2000.0])


@pytest.mark.parametrize("overload", ["spyre::qfp8ch", "spyre::qfp8wt"])
def test_the_nearest_number(overload: str) -> None:
    small = NUMBERS[:6]
    same(result(overload, small), small.astype(FP8).astype(np.float64))
    assert types(calling(overload), small) == [((6,), "f8E4M3FN")]


@pytest.mark.parametrize("overload", ["spyre::quantize_fp8_with_scale", "spyre::quantize_weight_fp8_with_scale"])
@pytest.mark.parametrize("scale", [2.0, -0.5])
def test_quotients_are_limited_to_the_numbers_of_the_format(overload: str, scale: float) -> None:
    wanted = np.clip(NUMBERS / scale, -448, 448).astype(FP8).astype(np.float64)
    same(result(overload, NUMBERS, np.array(scale)), wanted)
    assert types(calling(overload), NUMBERS.astype(np.float16), np.array(scale)) == [((9,), "f8E4M3FN")]


def test_numbers_come_back_as_halves() -> None:
    x = np.array([1.5, -448.0, NAN]).astype(FP8)
    same(result("spyre::dequantize_fp8_with_scale", x, np.array(0.25)), [0.375, -112.0, NAN])
    assert types(calling("spyre::dequantize_fp8_with_scale"), x, np.array(0.25)) == [((3,), "f16")]


def test_budgets() -> None:
    products, rounded = (
        ("scaled_mm_of_aten", "scaled_mm_by_recipes", "scaled_mm"),
        ("quantized", "quantized_with_scale", "product_of_bytes"),
    )
    wanted = dict.fromkeys(products, (8, False)) | dict.fromkeys(rounded, (0, False)) | {"dequantized": (1, False)}
    assert budgets(quantized.__name__) == wanted
    assert defaults(quantized.__name__) == {("out_dtype", None), ("use_fast_accum", False), ("contraction_dim", ())}
