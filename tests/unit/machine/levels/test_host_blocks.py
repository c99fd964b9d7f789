"""Blocks that the host chooses, on hand-written programs, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.errors import InputError, NoRunError
from tests.unit.machine.modules import run

HOST, AT = "tensor<4x192xf32>", "tensor<1xi64>"
LOOP = f"""
    %b = spyre.loop.block %x dim 1 at %y : {HOST}, {AT} -> tensor<4x64xf32>
    %n = spyre.loop.nest [m = 4, n = 64] ins(%b[m, n] : tensor<4x64xf32>) -> [m, n] : tensor<4x64xf32> {{
    ^bb0(%e : f32):
      %r = arith.negf %e : f32
      spyre.loop.yield %r : f32
    }}
    %z = spyre.loop.put %n into %x dim 1 at %y : tensor<4x64xf32>, {HOST}, {AT} -> {HOST}
    func.return %z : {HOST}"""
WHOLE = "!spyre.tensor<[4, 192] x SEN169_FP16, order [1, 0], stick 1, hbm>"
PART = "!spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, extents [4, 192], hbm>"
KERNEL = f"""
    %d = spyre.kernel.to_device %x : {HOST} to {WHOLE}
    %b = spyre.kernel.block_number of %y, blocks of 64 in 192 : {AT}
    %p = spyre.kernel.tile %d dim 1 at %b * 64 : {WHOLE} to {PART}
    spyre.kernel.compute "neg" [m = 4, n = 64] ins(%p[m, n] : {PART}) outs(%p[m, n] : {PART})
    %z = spyre.kernel.from_device %d : {WHOLE} to {HOST}
    func.return %z : {HOST}"""


def program(body: str) -> str:
    return f"func.func @main(%x: {HOST}, %y: {AT}) -> {HOST} {{{body}\n}}"


@pytest.mark.parametrize("body", [LOOP, KERNEL])
@pytest.mark.parametrize("at", [0, 63, 64, 191])
def test_one_block_changes(body: str, at: int) -> None:
    x = np.arange(4 * 192, dtype=np.float64).reshape(4, 192) % 97
    expected = x.copy()
    expected[:, at // 64 * 64 :][:, :64] *= -1
    found = run(program(body), x.copy(), np.array([at]))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("body", [LOOP, KERNEL])
@pytest.mark.parametrize("at", [-1, 192])
def test_a_position_outside(body: str, at: int) -> None:
    with pytest.raises(InputError, match=rf"argument 1 is {at}, and the tensor .* has entries 0 to 191"):
        run(program(body), np.zeros((4, 192)), np.array([at]))


@pytest.mark.parametrize("body", [LOOP.replace("at %y", "at %y plus 5"), KERNEL.replace("of %y", "of %y plus 5")])
def test_what_is_added_to_a_position(body: str) -> None:
    x = np.arange(4 * 192, dtype=np.float64).reshape(4, 192) % 97
    expected = x.copy()
    expected[:, 64:128] *= -1
    np.testing.assert_array_equal(run(program(body), x.copy(), np.array([60])), expected)
    with pytest.raises(InputError, match=r"argument 1 plus 5 is 192, and the tensor .* has entries 0 to 191"):
        run(program(body), x, np.array([187]))


PAGES, NUMBERS = "tensor<4x3xf32>", "tensor<4xi64>"
RUN = f"""
    %b = spyre.loop.block %x dim 0 at %y number 1 from_end per 3 run 3 : {PAGES}, {NUMBERS} -> tensor<1x3xf32>
    func.return %b : tensor<1x3xf32>"""


def page(*numbers: int) -> object:
    x = np.arange(12.0).reshape(4, 3)
    return run(f"func.func @main(%x: {PAGES}, %y: {NUMBERS}) -> tensor<1x3xf32> {{{RUN}\n}}", x, np.array(numbers))


@pytest.mark.parametrize("numbers", [(0, 6, 7, 8), (99, -6, -5, -4), (0, 6, -5, 8)])
def test_a_run_of_positions_is_an_entry(numbers: tuple[int, ...]) -> None:
    np.testing.assert_array_equal(page(*numbers), [[6, 7, 8]])


@pytest.mark.parametrize(
    ("numbers", "told"),
    [((0, 7, 8, 9), "integer 1 of argument 1 is 7"), ((0, 6, 8, 7), "integer 2 of argument 1 is 8")],
    ids=["from its second place on", "out of order"],
)
def test_a_run_that_is_none(numbers: tuple[int, ...], told: str) -> None:
    with pytest.raises(NoRunError, match=rf"{told}, .* integers 1 to 3 have to be the places of one page in order"):
        page(*numbers)


def test_what_is_added_to_a_run_counts() -> None:
    text = f"func.func @main(%x: {PAGES}, %y: {NUMBERS}) -> tensor<1x3xf32> {{{RUN}\n}}"
    shifted = text.replace("number 1 from_end", "number 1 plus 1 from_end")
    x = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(run(shifted, x, np.array([0, 5, 6, 7])), x[2:3])
    with pytest.raises(NoRunError):
        run(shifted, x, np.array([0, 6, 7, 8]))


def test_runs_in_blocks_of_several_entries() -> None:
    body = RUN.replace("tensor<1x3xf32>", "tensor<2x3xf32>")
    text = f"func.func @main(%x: {PAGES}, %y: {NUMBERS}) -> tensor<2x3xf32> {{{body}\n}}"
    x = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(run(text, x, np.array([0, 9, 10, 11])), x[2:])


def test_negative_places_of_a_run_name_nothing_where_none_counts_from_the_end() -> None:
    text = f"func.func @main(%x: {PAGES}, %y: {NUMBERS}) -> tensor<1x3xf32> {{{RUN}\n}}"
    with pytest.raises(NoRunError):
        run(text.replace("from_end ", ""), np.arange(12.0).reshape(4, 3), np.array([0, 6, -5, 8]))
