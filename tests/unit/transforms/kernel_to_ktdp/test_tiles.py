"""Kernels cut at sticks: parts of loops and strides of operands, in elements, worked out by hand."""

from __future__ import annotations

from math import prod

import pytest

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.errors import LoweringError
from spyre_mlir.transforms.kernel_to_ktdp.tiles import LoopCut, LoopPiece, TiledKernel, fit, kernel_in_tiles
from tests.unit.machine.modules import device
from tests.unit.transforms.kernel_to_ktdp.kernels import gather, kernels, matrix, sparse
from tests.unit.transforms.levels import ops, passed


def cut_at_sticks(text: str) -> TiledKernel:
    (op,) = ops(passed(text), KernelOp)
    return kernel_in_tiles(op)


def rows(loops: str, *shape: int) -> str:
    t, v, s = matrix(*shape), matrix(shape[1]), sparse(shape[0])
    uses = f"ins(%a[m, n] : {t}, %v[n] : {v}, %s[m] : {s}) outs(%out[m, n] : {t})"
    return kernels({"a": t, "v": v, "s": s}, f'spyre.kernel.compute "where3" [{loops}] {uses}', t)


def test_a_loop_in_lanes_is_cut_in_sticks_and_lanes() -> None:
    kernel = cut_at_sticks(rows("m = 4 over 2, n = 200 over 4", 4, 200))
    m, n = kernel.cuts["m"], kernel.cuts["n"]
    assert m == LoopCut("m", 4, 2, ((1, 4),))
    assert n == LoopCut("n", 200, 4, ((64, 4), (1, 64)))
    assert (m.outer, m.steps, m.inner) == (("m", 1), 2, 1)
    assert (n.outer, n.steps, n.inner) == (("n", 64), 1, 64)
    assert kernel.cores == 8
    assert [kernel.count(a) for a in (m.outer, n.outer, ("n", 1))] == [4, 4, 64]
    assert [kernel.count(a, local=True) for a in (m.outer, n.outer, ("n", 1))] == [2, 1, 64]
    # Core numbers count the last of the loops that are listed first fastest: n has neighbours, m those 4 apart.
    assert sorted(kernel.places.values()) in ([(1, 2), (2, 4)], [(1, 4), (4, 2)])


def test_strides_of_operands() -> None:
    """Four rows of four sticks, the sticks outermost: a row is 64 elements on, a stick 4 x 64."""
    kernel = cut_at_sticks(rows("m = 4, n = 200", 4, 200))
    a, v, s, out = kernel.readings
    assert dict(a.strides) == {("m", 1): 64, ("n", 64): 256, ("n", 1): 1}
    assert dict(v.strides) == {("n", 64): 64, ("n", 1): 1}
    assert dict(s.strides) == {("m", 1): 64}
    assert a.device_order == (("n", 64), ("m", 1), ("n", 1))
    assert [r.number for r in kernel.readings] == [0, 1, 2, 3] and out.offset == 0 and not out.local
    assert kernel.places == {}


def test_offsets_are_in_elements() -> None:
    t, part = matrix(4, 128), matrix(2, 128)
    body = f'spyre.kernel.compute "neg" [m = 2, n = 128] ins(%a[m + 2, n] : {t}) outs(%out[m, n] : {part})'
    a, out = cut_at_sticks(kernels({"a": t}, body, part)).readings
    assert (a.offset, out.offset) == (128, 0)
    assert dict(a.strides) == {("m", 1): 64, ("n", 64): 256, ("n", 1): 1}


def test_two_loops_in_lanes() -> None:
    """A transposition: each loop is in the lanes of one side."""
    a, b = device((64, 128), 1, (1, 0)), device((64, 128), 0, (0, 1))
    kernel = cut_at_sticks(
        kernels({"a": a}, f"spyre.kernel.restickify [m = 64, n = 128] ins(%a[m, n] : {a}) outs(%out[m, n] : {b})", b)
    )
    assert kernel.cuts["m"].parts == ((64, 1), (1, 64)) and kernel.cuts["n"].parts == ((64, 2), (1, 64))
    source, target = kernel.readings
    assert dict(source.strides) == {("m", 1): 64, ("n", 64): 64 * 64, ("n", 1): 1}
    assert dict(target.strides) == {("m", 1): 1, ("n", 64): 64 * 64, ("n", 1): 64}


def test_slices_in_the_scratchpads_have_their_own_strides() -> None:
    """A core has two of four rows: its sticks are 2 x 64 elements apart, those of the whole 4 x 64."""
    t, lx = matrix(4, 128), matrix(4, 128, space="lx")
    body = f"""%l = spyre.kernel.alloc at 0 : i64 : {lx}
    spyre.kernel.compute "exp" [m = 4 over 2, n = 128] ins(%a[m, n] : {t}) outs(%l[m, n] : {lx})
    spyre.kernel.compute "neg" [m = 4 over 2, n = 128] ins(%l[m, n] : {lx}) outs(%out[m, n] : {t})"""
    exp, _ = ops(passed(kernels({"a": t}, body, t)), KernelOp)
    source, target = kernel_in_tiles(exp).readings
    assert (source.local, target.local) == (False, True)
    assert (source.strides["n", 64], target.strides["n", 64]) == (256, 128)


def test_indices_that_are_read_whole_need_no_cut() -> None:
    kernel = cut_at_sticks(gather(70, 128, 64))
    assert kernel.cuts["i"].parts == ((1, 64),)
    index, table, out = kernel.readings
    assert dict(index.strides) == {("i", 1): 1}
    assert dict(table.strides) == {("n", 64): 64, ("n", 1): 1}
    assert dict(out.strides) == {("i", 1): 64, ("n", 64): 64 * 64, ("n", 1): 1}


PIECES = {
    "whole sticks": (LoopCut("n", 128, 1, ((64, 2), (1, 64))), [LoopPiece(0, 2, 64)]),
    "divided whole sticks": (LoopCut("n", 128, 2, ((64, 2), (1, 64))), [LoopPiece(0, 1, 64)]),
    "a last stick in part": (LoopCut("n", 200, 1, ((64, 4), (1, 64))), [LoopPiece(0, 3, 64), LoopPiece(3, 1, 8)]),
    "less than a stick": (LoopCut("n", 40, 1, ((64, 1), (1, 64))), [LoopPiece(0, 1, 40)]),
    "no sticks": (LoopCut("n", 7, 1, ((1, 7),)), [LoopPiece(0, 7, 1)]),
    "three parts, whole": (LoopCut("n", 128, 1, ((64, 2), (32, 2), (1, 32))), [LoopPiece(0, 2, 64)]),
}


@pytest.mark.parametrize("name", PIECES)
def test_pieces_of_a_loop_leave_padding_out(name: str) -> None:
    cut, wanted = PIECES[name]
    (op,) = ops(passed(rows("m = 4, n = 200", 4, 200)), KernelOp)
    assert TiledKernel(op, {"n": cut}, (), {}).pieces("n") == wanted


@pytest.mark.parametrize(
    "cut", [LoopCut("n", 200, 4, ((64, 4), (1, 64))), LoopCut("n", 200, 1, ((64, 4), (32, 2), (1, 32)))]
)
def test_a_divided_loop_ends_with_a_stick(cut: LoopCut) -> None:
    (op,) = ops(passed(rows("m = 4, n = 200", 4, 200)), KernelOp)
    with pytest.raises(LoweringError, match="n of extent 200 is divided, and ends inside a stick of 64"):
        TiledKernel(op, {"n": cut}, (), {}).pieces("n")


@pytest.mark.parametrize(
    ("limit", "chosen"),
    [
        (96, {"a": 12, "b": 8}),
        (95, {"a": 6, "b": 8}),
        (47, {"a": 6, "b": 4}),
        (23, {"a": 4, "b": 4}),
        (11, {"a": 3, "b": 2}),
        (5, {"a": 2, "b": 2}),
        (1, {"a": 1, "b": 1}),
        (0, {"a": 1, "b": 1}),
    ],
)
def test_the_largest_loop_is_divided_first(limit: int, chosen: dict[str, int]) -> None:
    assert fit({"a": 12, "b": 8}, lambda steps: prod(steps.values()), limit) == chosen


def test_without_loops_nothing_is_divided() -> None:
    assert fit({}, lambda steps: 100, 1) == {}
