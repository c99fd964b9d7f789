"""Moves of a transfer to the device: text, and what the verifiers refuse."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.dialects.spyre.kernel import ToDeviceOp
from spyre_mlir.hw.moves import Move, RowParts
from spyre_mlir.hw.sticks import LinearExpr
from tests.unit.dialects.texts import function, lines_of, only, read

DEVICE = "!spyre.tensor<[1, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>"
TURNED = "#spyre.move<[m = 4, n = 32] [m, n] -> [n, m] of [32, 4]>"
FOLDED = "#spyre.move<[m = 32, n = 4] [m, n] -> [0, m * 4 + n] of [1, 128]>"


def sent(*moves: str, host: str = "4x32xf16") -> str:
    line = f"%d = spyre.kernel.to_device %h moved [{', '.join(moves)}] : tensor<{host}> to {DEVICE}"
    return function(f"%h: tensor<{host}>", line)


def test_text() -> None:
    text = sent(TURNED, FOLDED)
    op = only(read(text), ToDeviceOp)
    assert f"moved [{TURNED}, {FOLDED}]" in "".join(lines_of(read(text)))
    i, j = LinearExpr.of("m"), LinearExpr.of("n")
    assert op.moves[0] == Move((("m", 4), ("n", 32)), (i, j), (j, i), (32, 4))
    assert op.moves[1].target == (LinearExpr(), LinearExpr(0, (("m", 4), ("n", 1))))


def test_indices_of_parts_of_rows() -> None:
    device = "!spyre.tensor<[2, 1, 64] x SENUINT32, order [0, 1, 2], stick 2, hbm>"
    line = f"%d = spyre.kernel.to_device %h moved [#spyre.row_parts<2>] : tensor<1x64xi64> to {device}"
    module = read(function("%h: tensor<1x64xi64>", line))
    module.verify()
    assert line in "".join(lines_of(module))
    assert only(module, ToDeviceOp).moves == (RowParts(2),)
    with pytest.raises((VerifyException, ParseError), match="two parts or more, here in 1"):
        read(function("%h: tensor<1x64xi64>", line.replace("row_parts<2>", "row_parts<1>")))
    with pytest.raises(
        VerifyException, match=r"the host tensor has shape \(4, 1, 64\), the device tensor \(2, 1, 64\)"
    ):
        read(function("%h: tensor<1x64xi64>", line.replace("row_parts<2>", "row_parts<4>"))).verify()


def test_a_transfer_without_moves() -> None:
    line = f"%d = spyre.kernel.to_device %h : tensor<1x128xf16> to {DEVICE}"
    assert only(read(function("%h: tensor<1x128xf16>", line)), ToDeviceOp).moves == ()


@pytest.mark.parametrize(
    ("moves", "host", "message"),
    [
        ([TURNED], "4x32xf16", r"the host tensor has shape \(32, 4\), the device tensor \(1, 128\)"),
        ([FOLDED], "4x32xf16", "the source of a move: index m runs over 0 to 31, dimension 0 has 4"),
        ([TURNED, FOLDED], "4x32x1xf16", "the source of a move has rank 3, its map 2 expressions"),
    ],
)
def test_moves_that_do_not_fit_are_refused(moves: list[str], host: str, message: str) -> None:
    with pytest.raises(VerifyException, match=message):
        read(sent(*moves, host=host)).verify()


@pytest.mark.parametrize(
    ("move", "message"),
    [
        ("#spyre.move<[m = 4, n = 32] [m, n] -> [n, m] of [32, 3]>", "the target of a move: index m runs over 0 to 3"),
        ("#spyre.move<[m = 4, n = 32] [m, n] -> [0, m + n] of [1, 128]>", "writes some places twice"),
        ("#spyre.move<[m = 4, n = 32] [m, n] -> [0, n] of [1, 128]>", "writes some places twice"),
    ],
)
def test_targets_that_make_no_tensor_are_refused(move: str, message: str) -> None:
    with pytest.raises((VerifyException, ParseError), match=message):
        read(sent(move))
