"""Host tensors as they lie in device memory, against places worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.hw import image
from spyre_mlir.hw.number_formats import encoding
from spyre_mlir.hw.sticks import UNIT, StickLayout


def test_two_dimensions_as_published() -> None:
    """(128, 256) becomes [4, 128, 64]: element (r, c) is lane c % 64 of stick (c // 64) * 128 + r."""
    values = np.arange(128 * 256).reshape(128, 256)
    sticks = image.arrange(values, StickLayout((1, 0), 1, (128, 256)), 64)
    assert sticks.shape == (512, 64)
    for r, c in ((0, 0), (0, 63), (0, 64), (1, 0), (127, 255), (77, 130)):
        assert sticks[(c // 64) * 128 + r, c % 64] == values[r, c]


def test_padding_is_zero() -> None:
    sticks = image.arrange(np.ones((3, 70)), StickLayout((0, 1), 1, (4, 128)), 64)
    assert sticks.shape == (8, 64)
    assert sticks.sum() == 3 * 70
    assert not sticks[6:].any()  # the fourth row
    assert not sticks[1::2, 6:].any()  # behind element 69


def test_sparse_tensor_has_an_element_per_stick() -> None:
    sticks = image.arrange(np.array([5, 6, 7]), StickLayout((UNIT, 0), UNIT, (3,)), 64)
    assert sticks.shape == (3, 64)
    assert sticks[:, 0].tolist() == [5, 6, 7]
    assert not sticks[:, 1:].any()


def test_scalar() -> None:
    sticks = image.arrange(np.array(4.0), StickLayout((UNIT,), UNIT, ()), 64)
    assert sticks.shape == (1, 64)
    assert sticks[0, 0] == 4


def test_reserved_rows_of_a_relaid_tensor() -> None:
    """Four sticks per row are reserved, the elements are in the first."""
    layout = StickLayout((0, UNIT, 1), 1, (2, 64), unit_extent=4)
    sticks = image.arrange(np.full((2, 64), 3), layout, 64)
    assert [int(row.sum()) for row in sticks] == [192, 0, 0, 0, 192, 0, 0, 0]


@pytest.mark.parametrize(
    ("shape", "layout"),
    [
        ((5, 200), StickLayout((1, 0), 1, (5, 256))),
        ((200, 5), StickLayout((0, 1), 0, (256, 5))),
        ((3, 4, 65), StickLayout((1, 2, 0), 2, (3, 5, 128))),
        ((6,), StickLayout((0, UNIT), UNIT, (6,))),
    ],
)
def test_pieces_are_the_whole(shape: tuple[int, ...], layout: StickLayout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "PIECE_ELEMENTS", 128)
    values = np.random.default_rng(0).standard_normal(shape)
    parts = list(image.pieces(values, layout, 64))
    assert len(parts) > 1
    assert np.array_equal(np.concatenate(parts), image.arrange(values, layout, 64))


def test_codes_by_hand() -> None:
    """DL16 is sign, six exponent bits with bias 31, nine of fraction; infinity is the largest half on its way in."""
    values = np.array([0.0, 1.0, 0.5, -2.0, 1.5, np.nan, -np.inf])
    codes = encoding.encode(encoding.from_host(values, "SEN169_FP16"), "SEN169_FP16")
    assert codes[:6].tolist() == [0, 31 << 9, 30 << 9, 0x8000 | 32 << 9, 31 << 9 | 1 << 8, 0x7FFF]
    # 65504 is 2**15 * (1 + 511.5 / 512): nine bits round it up to 2**16.
    assert int(codes[6]) == 0x8000 | (16 + 31) << 9
    assert encoding.encode([2.0**40, -3.7], "IEEE_INT32").tolist() == [0, -3]
    assert encoding.decode(np.array([31 << 9], np.uint16), "SEN169_FP16").tolist() == [1.0]
