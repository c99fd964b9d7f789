"""Pointwise kernels and reductions in tiles of several sizes, run against numpy on whole numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import f16, f32

from spyre_mlir.dialects.spyre.kernel import AllocOp, KernelConstantOp, KernelOp
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.transforms.kernel_to_ktdp.elementwise import divisor, float_type, folded_number, tile_limit
from spyre_mlir.transforms.kernel_to_ktdp.tiles import kernel_in_tiles
from tests.unit.machine.modules import device
from tests.unit.transforms.kernel_to_ktdp.kernels import gather, kernels, lines, matrix, result, sparse, whole, written
from tests.unit.transforms.levels import ops, passed

T, V, S = matrix(4, 128), matrix(128), sparse(4)


def test_eight_tiles_of_four_bytes_an_element_fit() -> None:
    assert [tile_limit(n) for n in (3200, 63, 64, 0)] == [100, 1, 2, 1]


@pytest.mark.parametrize(("steps", "most", "found"), [(12, 5, 4), (7, 6, 1), (6, 9, 6), (6, 6, 6), (1, 1, 1)])
def test_divisors(steps: int, most: int, found: int) -> None:
    assert divisor(steps, most) == found


def test_numbers_that_are_known_when_the_program_is_written() -> None:
    one, row = sparse(), matrix(64)
    module = passed(f"""func.func @main() {{
      %a = spyre.kernel.constant 2.5 : f64 : {one}
      %b = spyre.kernel.constant 7 : i64 : {one}
      %c = spyre.kernel.constant 2.5 : f64 : {row}
      %d = spyre.kernel.constant #spyre.iota<0.0, 1.0> : {matrix(1)}
      %e = spyre.kernel.alloc : {one}
      func.return
    }}""")
    found = [folded_number(op.results[0]) for op in (*ops(module, KernelConstantOp), *ops(module, AllocOp))]
    assert found == [2.5, 7.0, None, None, None]


def add(kind: str, index: str, split: str = "m = 4 over 2, n = 128") -> str:
    body = f'spyre.kernel.compute "sub" [{split}] ins(%a[m, n] : {T}, %b[{index}] : {kind}) outs(%out[m, n] : {T})'
    return kernels({"a": T, "b": kind}, body, T)


@pytest.mark.parametrize("tile", [0, 128, 64])
@pytest.mark.parametrize(
    ("kind", "index", "shape"), [(T, "m, n", (4, 128)), (V, "n", (1, 128)), (S, "m", (4, 1)), (sparse(), "", (1, 1))]
)
def test_operands_are_repeated_along_what_they_lack(kind: str, index: str, shape: tuple[int, ...], tile: int) -> None:
    a, b = whole(4, 128), whole(*shape, seed=1)
    own = b.reshape([int(e) for e in kind.partition("<[")[2].partition("]")[0].split(", ") if e])
    assert np.array_equal(result(add(kind, index), a, own, tile=tile), a - b)


def test_tiles_as_large_as_allowed() -> None:
    """Two rows of two sticks on each core: 256 elements."""
    assert [lines(written(add(T, "m, n"), tile), "scf.for")[0] for tile in (0, 256, 128, 64)] == [0, 0, 1, 2]
    assert "grid = [2" in written(add(T, "m, n")).text


def test_a_number_needs_no_memory() -> None:
    one = sparse()
    body = f"""%k = spyre.kernel.constant 3.0 : f64 : {one}
    spyre.kernel.compute "sub" [m = 4, n = 128] ins(%k[] : {one}, %a[m, n] : {T}) outs(%out[m, n] : {T})"""
    program = written(kernels({"a": T}, body, T))
    assert lines(program, "ktdp.load", "linalg.broadcast") == [1, 0]
    (found,) = program.run([a := whole(4, 128)])
    assert np.array_equal(found, 3 - a)


def test_constants_of_functions_reach_the_program() -> None:
    """Beyond the threshold, softplus is its argument."""
    numbers = "op_info {softplusBeta = 2.0 : f64, softplusThresh = 4.0 : f64}"
    body = f'spyre.kernel.compute "softplus" [m = 4, n = 128] ins(%a[m, n] : {T}) outs(%out[m, n] : {T}) {numbers}'
    a = whole(4, 128)
    wanted = np.where(2.0 * a > 4, a, np.log1p(np.exp(2.0 * a.astype(np.float64))) / 2)
    np.testing.assert_allclose(result(kernels({"a": T}, body, T), a), wanted, rtol=1e-3, atol=1e-3)


def test_movement_computes_nothing() -> None:
    a, b = device((64, 128), 1, (1, 0)), device((64, 128), 0, (0, 1))
    body = f"spyre.kernel.restickify [m = 64, n = 128] ins(%a[m, n] : {a}) outs(%out[m, n] : {b})"
    x = whole(64, 128)
    assert np.array_equal(result(kernels({"a": a}, body, b), x), x)
    assert np.array_equal(result(kernels({"a": a}, body, b), x, tile=64), x)


def fold(function: str, loops: str, shape: tuple[int, ...], out: str, index: str) -> str:
    source = matrix(*shape)
    uses = f"ins(%a[m, n] : {source}) outs(%out[{index}] : {out})"
    return kernels({"a": source}, f'spyre.kernel.compute "{function}" [{loops}] {uses}', out)


FOLDS: dict[str, tuple[str, tuple[int, ...], str, str, Any]] = {
    "along sticks": ("m = 4 over 2, n = 128", (4, 128), S, "m", 1),
    "along a last stick in part": ("m = 4, n = 200", (4, 200), S, "m", 1),
    "along part of a stick": ("m = 4, n = 40", (4, 40), S, "m", 1),
    "across sticks": ("m = 6, n = 128 over 2", (6, 128), V, "n", 0),
    "of everything": ("m = 4, n = 200", (4, 200), sparse(), "", None),
}


@pytest.mark.parametrize(("function", "tile"), [("sum", 0), ("sum", 64), ("max", 0), ("min", 64)])
@pytest.mark.parametrize("name", FOLDS)
def test_reductions_over_what_the_model_asks_for(function: str, name: str, tile: int) -> None:
    """Padding holds 77, which a sum and a maximum would show; all numbers below 0, or above, would show a 0."""
    loops, shape, out, index, axis = FOLDS[name]
    a = whole(*shape, low=-4, high=5) if function == "sum" else whole(*shape, low=80, high=99)
    a = -a if function == "max" else a
    wanted = {"sum": np.sum, "max": np.max, "min": np.min}[function](a.astype(np.float64), axis=axis)
    assert np.array_equal(result(fold(function, loops, shape, out, index), a, tile=tile), wanted)


def test_sums_are_kept_in_single_precision() -> None:
    """2048 and 200 times 1: half precision alone would stay at 2048."""
    a = np.ones((1, 200), np.float16)
    a[0, 0] = 2048
    for tile in (0, 64):
        program = written(fold("sum", "m = 1, n = 200", (1, 200), sparse(1), "m"), tile)
        (found,) = program.run([a])
        assert found.item() == np.float16(2048 + 199)
        assert lines(program, "arith.truncf")[0] == 1
    assert lines(written(fold("max", "m = 4, n = 128", (4, 128), S, "m")), "arith.truncf", "arith.extf") == [0, 0]


def test_the_loops_of_a_reduction() -> None:
    """Three whole sticks and one in part: with tiles of a stick, a loop over the whole ones, and the last apart."""
    text = fold("sum", "m = 4, n = 200", (4, 200), S, "m")
    assert [lines(written(text, tile), "scf.for", "linalg.reduce") for tile in (0, 64)] == [[0, 2], [2, 2]]


def test_arithmetic_on_integers_is_refused() -> None:
    kinds = [device((4, 64), 1, (1, 0), form) for form in ("SEN169_FP16", "IEEE_FP32", "SENUINT32")]
    bodies = [f'spyre.kernel.compute "neg" [m = 4, n = 64] ins(%a[m, n] : {k}) outs(%out[m, n] : {k})' for k in kinds]
    found = [ops(passed(kernels({"a": k}, b, k)), KernelOp) for k, b in zip(kinds, bodies, strict=True)]
    half, single, integers = (kernel_in_tiles(op).readings[0] for (op,) in found)
    assert (float_type(half), float_type(single)) == (f16, f32)
    with pytest.raises(UnsupportedError, match="arithmetic on elements of format SENUINT32"):
        float_type(integers)


@pytest.mark.parametrize(("count", "tile"), [(40, 0), (72, 64)])
def test_pieces_of_a_loop_that_ends_inside_a_stick(count: int, tile: int) -> None:
    """Of indices: one stick of 32 or two, and 8 more."""
    table, index = whole(70, 128), np.arange(count) * 7 % 70
    assert np.array_equal(result(gather(70, 128, count), index, table, tile=tile), table[index])
