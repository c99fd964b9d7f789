"""Matrix products in tiles of several sizes, on several cores, run against numpy on whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.errors import LoweringError
from spyre_mlir.transforms.kernel_to_ktdp.contractions import Roles, combined
from spyre_mlir.transforms.kernel_to_ktdp.function_builder import Code
from spyre_mlir.transforms.kernel_to_ktdp.tiles import kernel_in_tiles
from tests.unit.transforms.kernel_to_ktdp.kernels import kernels, lines, matrix, result, sparse, whole, written
from tests.unit.transforms.levels import ops, passed


def product(loops: str, a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...], *index: str) -> str:
    kinds = [matrix(*shape) for shape in (a, b, c)]
    one, other, out = (f"%{n}[{i}] : {k}" for n, i, k in zip(("a", "b", "out"), index, kinds, strict=True))
    body = f'spyre.kernel.compute "batchmatmul" [{loops}] ins({one}, {other}) outs({out})'
    return kernels({"a": kinds[0], "b": kinds[1]}, body, kinds[2])


def plain(loops: str, m: int, k: int, n: int) -> str:
    return product(loops, (m, k), (k, n), (m, n), "m, k", "k, n", "m, n")


def test_roles_of_loops() -> None:
    text = product(
        "b = 2, h = 3, m = 4, n = 64, k = 128", (2, 3, 4, 128), (2, 128, 64), (2, 3, 4, 64),
        "b, h, m, k", "b, k, n", "b, h, m, n",
    )  # fmt: skip
    (op,) = ops(passed(text), KernelOp)
    assert Roles.of(kernel_in_tiles(op)) == Roles(("b",), ("h", "m"), ("n",), ("k",))


# Loops of a program of 6 x 128 x 128 by the elements a tile may have: rows, columns in sticks, sums in sticks.
TILES = {0: 0, 128 * 64: 1, 64 * 64: 2, 64: 3}


@pytest.mark.parametrize("tile", TILES)
def test_tiles_of_any_size(tile: int) -> None:
    a, b = whole(6, 128), whole(128, 128)
    text = plain("m = 6, n = 128, k = 128", 6, 128, 128)
    assert np.array_equal(result(text, a, b, tile=tile), a.astype(np.float64) @ b)
    assert (lines(written(text, tile), "scf.for")[0] > 0) == bool(tile)


def test_the_largest_of_three_tiles_counts() -> None:
    """A tile of b is 128 x 128 elements; with one fewer allowed, rows go one by one, and then the sum in sticks."""
    text = plain("m = 6, n = 128, k = 128", 6, 128, 128)
    assert lines(written(text, 128 * 128), "scf.for", "linalg.matmul") == [0, 1]
    assert lines(written(text, 128 * 128 - 1), "scf.for", "linalg.matmul") == [2, 1]
    wide = plain("m = 256, n = 64, k = 64", 256, 64, 64)
    assert lines(written(wide, 256 * 64), "scf.for") == [0]
    assert lines(written(wide, 256 * 64 - 1), "scf.for") == [1]


@pytest.mark.parametrize("tile", [0, 64 * 64])
def test_batches_one_by_one(tile: int) -> None:
    a, b = whole(2, 3, 4, 128), whole(2, 128, 64)
    text = product(
        "b = 2 over 2, h = 3, m = 4 over 2, n = 64, k = 128", (2, 3, 4, 128), (2, 128, 64), (2, 3, 4, 64),
        "b, h, m, k", "b, k, n", "b, h, m, n",
    )  # fmt: skip
    assert np.array_equal(result(text, a, b, tile=tile), a.astype(np.float64) @ b[:, None])
    shared = product(
        "b = 3, m = 2, n = 64, k = 64", (3, 2, 64), (3, 64, 64), (3, 2, 64), "b, m, k", "b, k, n", "b, m, n"
    )
    x, y = whole(3, 2, 64), whole(3, 64, 64)
    program = written(shared, tile)
    assert lines(program, "scf.for") == [1]
    assert np.array_equal(program.run([x, y])[0], x.astype(np.float64) @ y)


def test_a_vector_of_columns() -> None:
    """Without columns, the second operand is a matrix of one."""
    a, b, out = matrix(4, 128), sparse(128), sparse(4)
    body = f'spyre.kernel.compute "batchmatmul" [m = 4, k = 128] ins(%a[m, k] : {a}, %b[k] : {b}) outs(%out[m] : {out})'
    text = kernels({"a": a, "b": b}, body, out)
    x, y = whole(4, 128), whole(128)
    assert np.array_equal(result(text, x, y), x.astype(np.float64) @ y)


@pytest.mark.parametrize("tile", [0, 64 * 64])
def test_a_divided_sum_is_combined_and_written_once(tile: int) -> None:
    a, b = whole(4, 256), whole(256, 64)
    text = plain("m = 4 over 2, n = 64, k = 256 over 4", 4, 256, 64)
    program = written(text, tile)
    assert "grid = [8" in program.text
    assert lines(program, "inter_tile_produce", "inter_tile_reduce", "scf.if", "arith.cmpi eq") == [1, 1, 1, 1]
    # Teams of four neighbours, two of them.
    assert "affine_set<(d0)[s0] : (d0 - 4 * s0 >= 0, -d0 + 4 * s0 + 3 >= 0)>" in program.text
    assert "groups = affine_set<(d0) : (d0 >= 0, -d0 + 1 >= 0)>" in program.text
    assert np.array_equal(program.run([a, b])[0], a.astype(np.float64) @ b)


def test_an_undivided_sum_is_written_by_all() -> None:
    program = written(plain("m = 4 over 2, n = 64, k = 256", 4, 256, 64))
    assert lines(program, "inter_tile", "scf.if") == [0, 0]


def test_sums_are_in_single_precision() -> None:
    """2048 and 64 times 1: half precision would stay at 2048 when 1 is added."""
    a, b = np.ones((1, 128), np.float16), np.ones((128, 64), np.float16)
    a[0, 64:] = 0
    a[0, 0] = 2048
    for tile in (0, 64 * 64):
        (found,) = written(plain("m = 1, n = 64, k = 128", 1, 128, 64), tile).run([a, b])
        assert np.array_equal(found, np.full((1, 64), np.float16(2048 + 63)))


def test_cores_that_share_a_sum_are_neighbours() -> None:
    (op,) = ops(passed(plain("m = 4 over 2, n = 64, k = 256 over 4", 4, 256, 64)), KernelOp)
    kernel = kernel_in_tiles(op)
    assert kernel.places["m"] == (4, 2)
    code = Code({})
    with pytest.raises(LoweringError, match="cores that share the sum over m are 4 apart, expected neighbours"):
        combined(code, kernel, "m", code.index(0))
