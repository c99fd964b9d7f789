"""Device forms of tensors, and the room that rearranged weights have."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects.builtin import Float8E4M3FNType

from spyre_mlir.hw.moves import Move
from spyre_mlir.hw.sticks import LinearExpr
from spyre_mlir.hw.weight_room import MORE_AT_LEAST
from spyre_mlir.transforms.loop_to_kernel.device_forms import (
    DeviceForms,
    WeightRoom,
    least_elements,
)
from tests.unit.transforms.loop_to_kernel.planning import tensor

ROW, COLUMN = LinearExpr.of("i"), LinearExpr.of("j")
TURN = Move((("i", 70), ("j", 6)), (ROW, COLUMN), (COLUMN, ROW), (6, 70))


@pytest.mark.parametrize(
    ("shape", "least"),
    [
        ((), 64),
        ((3, 0), 0),
        ((1,), 64),
        ((64, 3), 192),
        ((70, 6), 6 * 128),
        ((128, 65), 128 * 65),
        ((65, 66), 65 * 128),
    ],
)
def test_sticks_of_the_best_dimension_count(shape: tuple[int, ...], least: int) -> None:
    assert least_elements(shape) == least


def test_a_weight_after_a_move() -> None:
    weight = tensor(70, 6)
    forms = DeviceForms((70, 6), "SEN169_FP16", host=weight, prepared=True)
    found = forms.after(TURN, WeightRoom())
    assert found is not None
    assert (found.shape, found.host, found.moves, found.prepared) == ((6, 70), weight, (TURN,), True)
    assert found.free_layout


@pytest.mark.parametrize("known", [{}, {"prepared": True}, {"host": tensor(70, 6)}])
def test_other_tensors_are_not_the_hosts_to_move(known: dict[str, Any]) -> None:
    forms = DeviceForms((70, 6), "SEN169_FP16", **known)
    assert forms.after(TURN, WeightRoom(1e9)) is None


def test_room_is_for_all_weights_together() -> None:
    one, other = tensor(64, 10), tensor(64, 10)
    room = WeightRoom(64 * 5)
    assert room.has(one, (64, 15))
    assert not room.has(one, (64, 16))
    room.take(one, (64, 13))
    assert room.has(one, (64, 15))
    assert room.has(other, (64, 12))
    assert not room.has(other, (64, 13))
    room.take(one, (64, 5))  # a smaller form of the same weight gives nothing back
    assert not room.has(other, (64, 13))


def test_a_program_has_five_percent_and_a_mebibyte_at_least() -> None:
    weights = [tensor(4096, 4096), tensor(64, 10)]
    assert WeightRoom.of(weights, region=False).elements == pytest.approx(0.05 * (4096 * 4096 + 640))
    assert WeightRoom.of(weights[1:], region=False).elements == MORE_AT_LEAST // 2
    assert WeightRoom.of(weights[1:], region=True).elements == pytest.approx(32)


def test_a_weight_of_eight_bit_floats_keeps_its_eight_bits() -> None:
    weight = tensor(70, 6, element=Float8E4M3FNType())
    forms = DeviceForms((70, 6), "SEN169_FP16").given(weight, prepared=True)
    assert (forms.host, forms.format) == (None, "SEN169_FP16")
    assert forms.origin is not None
    assert (forms.origin.format, forms.origin.host, forms.origin.prepared) == ("SEN143_FP8", weight, True)


@pytest.mark.parametrize(("shape", "prepared"), [((70, 6), False), ((), True)])
def test_inputs_and_numbers_are_sent_wide(shape: tuple[int, ...], prepared: bool) -> None:
    weight = tensor(*shape, element=Float8E4M3FNType())
    forms = DeviceForms(shape, "SEN169_FP16").given(weight, prepared=prepared)
    assert (forms.host, forms.prepared, forms.origin) == (weight, prepared, None)


def test_other_weights_are_sent_as_they_are() -> None:
    weight = tensor(70, 6)
    assert DeviceForms((70, 6), "SEN169_FP16").given(weight, prepared=True).host is weight
