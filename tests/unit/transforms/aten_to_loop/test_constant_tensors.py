"""Tensors made from numbers alone: what torch fills them with, as attributes of constants."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import FloatAttr, StringAttr, f16, f32, f64, i1, i32, i64
from xdsl.ir import Attribute

from spyre_mlir.dialects.spyre.named_values import IotaAttr, ResampleAttr
from spyre_mlir.ops.native import creation
from spyre_mlir.ops.native.resample import resample
from spyre_mlir.transforms.aten_to_loop.constant_tensors import known_value


def double(number: float) -> FloatAttr:
    return FloatAttr(number, f64)


@pytest.mark.parametrize(
    ("number", "element", "held"),
    [
        (2.75, f32, 2.75),
        (-2.75, f16, -2.75),
        (2.75, i64, 2.0),
        (-2.75, i32, -2.0),  # torch.full((), -2.75, dtype=torch.int32) is -2
        (3, f32, 3.0),
        (0.5, i1, 1.0),
        (-1, i1, 1.0),
        (0, i1, 0.0),
        (True, i1, 1.0),
    ],
)
def test_full_holds_its_number_as_the_element_type_has_it(number: float, element: Attribute, held: float) -> None:
    assert known_value(creation.full, {"fill_value": number}, element) == double(held)


def test_positions_hold_start_and_step() -> None:
    assert known_value(creation.arange, {"start": 3, "step": -0.5}, f32) == IotaAttr(double(3.0), double(-0.5))


def test_a_resampling_holds_mode_scale_and_offset() -> None:
    given = {"mode": "linear", "scale": 0.5, "offset": -0.25}
    wanted = ResampleAttr(StringAttr("linear"), double(0.5), double(-0.25))
    assert known_value(resample, given, f32) == wanted
