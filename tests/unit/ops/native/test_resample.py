"""Matrices that resample a dimension: weights as torch has them, modes of our own by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional
from xdsl.dialects.builtin import FloatAttr, StringAttr, f64

from spyre_mlir.dialects.spyre.named_values import ResampleAttr
from spyre_mlir.errors import ConstraintError
from spyre_mlir.ops.native.resample import resample, resample_weights
from tests.unit.machine.modules import parse
from tests.unit.ops.evaluation import check_samples


@pytest.mark.parametrize(("mode", "torchs"), [("linear", "bilinear"), ("cubic", "bicubic")])
@pytest.mark.parametrize("smoothed", [False, True])
def test_weights_are_what_torch_makes_of_unit_vectors(mode: str, torchs: str, smoothed: bool) -> None:
    x = torch.eye(6, dtype=torch.float64).reshape(6, 1, 6, 1).repeat(1, 1, 1, 2)
    expected = functional.interpolate(x, size=(4, 2), mode=torchs, antialias=smoothed)[:, 0, :, 0].T.numpy()
    got = resample_weights((4, 6), mode + "_smoothed" * smoothed, 1.5, 0.25)
    np.testing.assert_allclose(got, expected, atol=1e-12)


def test_taps_of_windows_side_by_side() -> None:
    """Windows of 3 over 7 elements: their first taps, their second ones, and their third ones, 0 behind the last."""
    met = resample_weights((9, 7), "taps", 3.0, 0.0) @ np.arange(1.0, 8.0)
    assert met.tolist() == [1, 4, 7, 2, 5, 0, 3, 6, 0]
    assert (resample_weights((4, 7), "taps", 2.0, 0.0) @ np.arange(1.0, 8.0)).tolist() == [1, 3, 2, 4]


@pytest.mark.parametrize(("distance", "turned"), [(2.0, [-3, -4, 1, 2]), (1.0, [-2, 1, -4, 3])])
def test_turned_elements(distance: float, turned: list[int]) -> None:
    assert (resample_weights((4, 4), "turned", distance, 0.0) @ np.arange(1.0, 5.0)).tolist() == turned


def test_elements_behind_the_last_pair_are_zero() -> None:
    assert (resample_weights((6, 6), "turned", 2.0, 0.0) @ np.arange(1.0, 7.0)).tolist() == [-3, -4, 1, 2, 0, 0]


@pytest.mark.parametrize(("size", "distance"), [((4, 8), 2.0), ((6, 6), 4.0)])
def test_turned_elements_are_a_pair_at_least(size: tuple[int, int], distance: float) -> None:
    with pytest.raises(ConstraintError, match="C4: turned"):
        resample.meaning(size=size, mode="turned", scale=distance, offset=0.0)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ConstraintError, match="C2: mode"):
        resample.meaning(size=(2, 2), mode="wavy", scale=1.0, offset=0.0)


@pytest.mark.parametrize(("scale", "offset"), [(2.5, 0.0), (0.5, 0.0), (2.0, 1.0)])
def test_taps_begin_at_the_first_element_and_are_whole(scale: float, offset: float) -> None:
    with pytest.raises(ConstraintError, match="C3: taps"):
        resample.meaning(size=(4, 7), mode="taps", scale=scale, offset=offset)


def test_the_matrix_is_one_line_of_text() -> None:
    text = """
        func.func @main() -> tensor<2x4xf32> {
          %0 = spyre.loop.constant #spyre.resample<"linear", 2.0, 0.5> : tensor<2x4xf32>
          func.return %0 : tensor<2x4xf32>
        }"""
    module = parse(text)
    constant = next(op for op in module.walk() if op.name == "spyre.loop.constant")
    wanted = ResampleAttr(StringAttr("linear"), FloatAttr(2.0, f64), FloatAttr(0.5, f64))
    assert constant.properties["value"] == wanted
    assert '#spyre.resample<"linear", 2.0, 0.5>' in str(module)


@pytest.mark.parametrize("mode", ["linear", "cubic", "linear_smoothed", "cubic_smoothed"])
def test_weights_in_fixed_point_have_sixteen_bits_with_their_sign(mode: str) -> None:
    wide, fixed = (resample_weights((4, 6), mode + kind, 1.3, 0.17) for kind in ("", "_fixed"))
    bits = next(n for n in range(30) if (fixed * 2**n == np.round(fixed * 2**n)).all())
    assert (fixed * 2**bits).max() * 2 >= 2**14 and (fixed * 2**bits).max() < 2**15
    np.testing.assert_allclose(fixed, wide, rtol=0, atol=2.0 ** -(bits + 1))


def test_nearest_weights_choose_one_element_each() -> None:
    """Places 0.5, 2 and 3.5 of three elements: the first, the last, and what is beyond the last."""
    assert resample_weights((3, 3), "nearest", 1.5, 0.5).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]


def test_samples_fit() -> None:
    check_samples("spyre_mlir.ops.native.resample")
