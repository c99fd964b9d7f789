"""Numbers of cards: what may differ, and what must hold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spyre_mlir.hw.spec import SEGMENT_BYTES, SPYRE, STICK_BYTES, USER_SEGMENTS, segment_base, spec_with


def test_the_architecture_is_as_published() -> None:
    assert (STICK_BYTES, SEGMENT_BYTES, USER_SEGMENTS) == (128, 17_179_869_184, 7)
    assert segment_base(3) == 51_539_607_552


def test_the_standard_card_is_as_published() -> None:
    assert (SPYRE.cores_per_card, SPYRE.lx_bytes, SPYRE.lx_usable_bytes) == (32, 2_097_152, 1_589_376)
    assert (SPYRE.hbm_card_bytes, SPYRE.pool_bytes) == (120_259_084_288, 16_106_127_360)
    assert (SPYRE.span_bytes, SPYRE.operands_per_kernel, SPYRE.loop_trips) == (268_431_360, 8, 65_535)


def test_differences_from_the_standard_card_are_named() -> None:
    card = replace(SPYRE, cores_per_card=64)
    assert card.differences() == {"cores_per_card": 64}
    assert SPYRE.differences() == {}
    assert repr(card) == "replace(SPYRE, cores_per_card=64)"
    assert repr(SPYRE) == "SPYRE"


def test_a_card_by_its_numbers() -> None:
    assert spec_with({"cores_per_card": 64}) == replace(SPYRE, cores_per_card=64)
    assert spec_with({}) == SPYRE
    with pytest.raises(ValueError, match="a card has no number core; it has cores_per_card, lx_bytes, "):
        spec_with({"core": 1})


def test_numbers_no_card_can_have_are_refused() -> None:
    with pytest.raises(ValueError, match="loop_trips must be positive, got 0"):
        replace(SPYRE, loop_trips=0)
    with pytest.raises(ValueError, match="lx_usable_bytes 2097153 exceeds lx_bytes 2097152"):
        replace(SPYRE, lx_usable_bytes=2_097_153)
    assert replace(SPYRE, lx_usable_bytes=2_097_152).lx_usable_bytes == 2_097_152
