"""Gathers in tiles of several sizes, run against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.unit.machine.modules import device
from tests.unit.transforms.kernel_to_ktdp.kernels import gather, kernels, lines, matrix, whole, written


@pytest.mark.parametrize("tile", [0, 2048, 64])
@pytest.mark.parametrize(("count", "split"), [(64, 1), (64, 2), (40, 1), (5, 1)])
def test_rows_that_indices_name(count: int, split: int, tile: int) -> None:
    """40 indices are a stick of 32 and a quarter of one, which is walked apart."""
    table, index = whole(70, 128), np.arange(count) * 7 % 70
    program = written(gather(70, 128, count, split), tile)
    (found,) = program.run([index, table])
    assert np.array_equal(found, table[index])


def test_tiles_and_pieces() -> None:
    words = ("scf.for", "construct_indirect_access_tile")
    assert lines(written(gather(70, 128, 64)), *words) == [0, 1]
    assert lines(written(gather(70, 128, 40)), *words) == [0, 1]
    assert lines(written(gather(70, 128, 64), 64), *words) == [2, 1]


def test_indices_of_two_dimensions() -> None:
    index, table = device((3, 40), 1, (0, 1), "SENUINT32"), device((50, 128), 1, (0, 1))
    out = matrix(3, 40, 128)
    uses = f"ins(%i[a, b] : {index}, %t[0, n] : {table}) outs(%out[a, b, n] : {out})"
    body = f"spyre.kernel.gather axis 0 [a = 3, b = 40, n = 128] {uses}"
    values, at = whole(50, 128), np.arange(120).reshape(3, 40) * 7 % 50
    for tile in (0, 64):
        program = written(kernels({"i": index, "t": table}, body, out, {"i": "i32"}), tile)
        assert np.array_equal(program.run([at, values])[0], values[at])


def test_one_index() -> None:
    index, table = device((1,), 0, (0,), "SENUINT32"), device((50, 128), 1, (0, 1))
    out = matrix(1, 128)
    uses = f"ins(%i[0] : {index}, %t[0, n] : {table}) outs(%out[0, n] : {out})"
    body = f"spyre.kernel.gather axis 0 [n = 128] {uses}"
    values = whole(50, 128)
    program = written(kernels({"i": index, "t": table}, body, out, {"i": "i32"}))
    assert np.array_equal(program.run([np.array([17]), values])[0], values[[17]])


@pytest.mark.parametrize("head", [0, 2])
def test_one_head_of_pages(head: int) -> None:
    """Heads lie outside of the pages that indices name."""
    index, table = device((40,), 0, (0,), "SENUINT32"), device((50, 3, 128), 2, (1, 0, 2))
    out = matrix(40, 128)
    uses = f"ins(%i[s] : {index}, %t[0, {head}, n] : {table}) outs(%out[s, n] : {out})"
    body = f"spyre.kernel.gather axis 0 [s = 40, n = 128] {uses}"
    values, at = whole(50, 384).reshape(50, 3, 128), np.arange(40) * 7 % 50
    program = written(kernels({"i": index, "t": table}, body, out, {"i": "i32"}))
    assert np.array_equal(program.run([at, values])[0], values[at, head])
