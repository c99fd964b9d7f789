"""Gathers of rows as planned kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spyre_mlir.dialects.spyre.loop import LoopGatherOp
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.moves import RowParts
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.transforms.loop_to_kernel.buffers import PartsBuffer
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner
from spyre_mlir.transforms.loop_to_kernel.operators.gathers import check_table, gathered_lanes, lower_gather
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.loop_to_kernel.planning import steps


def gather(rows: int, columns: int, table_map: str = "0, n") -> LoopGatherOp:
    """Rows of a table of 50 by 32-bit indices."""
    table, indices, result = f"tensor<50x{columns}xf16>", f"tensor<{rows}xi64>", f"tensor<{rows}x{columns}xf16>"
    read = f"rows(%i[i] : {indices}) of axis 0 in %t[{table_map}] : {table}"
    text = f"""func.func @main(%i: {indices}, %t: {table}) -> {result} {{
      %0 = spyre.loop.gather [i = {rows}, n = {columns}] {read} -> [i, n] : {result}
      func.return %0 : {result}
    }}"""
    return ops(passed(text), LoopGatherOp)[0]


def lowered(op: LoopGatherOp, *, prepared: bool = False) -> LayoutPlanner:
    p = LayoutPlanner()
    p.hosts |= {op.table: prepared, op.indices: prepared}
    lower_gather(p, op, SPYRE)
    return p


def test_the_columns_are_in_the_lanes_of_table_and_result() -> None:
    op = gather(8, 70)
    assert gathered_lanes(op, "SEN169_FP16") == [("n", (1, 1))]
    (step,) = steps(lowered(op))
    assert [loop.name for loop in step.space] == ["i", "n"]
    assert [use[0].moves for use in step.inputs] == [(), ()]


def test_a_few_wide_rows_are_gathered_in_parts_by_all_cores() -> None:
    (step,) = steps(lowered(gather(128, 2048)))
    (indices, _), (table, _) = step.inputs
    assert [(loop.name, loop.extent) for loop in step.space] == [("part", 8), ("i", 128), ("n", 256)]
    assert indices.shape == (8, 128) and table.shape == (400, 256)
    (of_indices,) = indices.moves
    assert isinstance(of_indices, RowParts) and isinstance(table, PartsBuffer)
    weight, at = np.arange(50 * 2048).reshape(50, 2048), np.arange(128) * 7 % 50
    parts = weight.reshape(400, 256)[of_indices.apply(at)]
    assert np.array_equal(np.concatenate(list(parts), axis=1), weight[at])
    assert table.layout.strides(64)[0] * 8 == table.whole.layout.strides(64)[0], "as far apart as parts of rows"
    assert table.whole.fixed, "nothing may come between them"


def test_pages_are_gathered_in_parts_of_what_lies_next_to_them() -> None:
    """A head of each page at a time, where 16 pages by 4 sequences are no whole sticks of indices."""
    table, indices, result = "tensor<50x8x64x128xf16>", "tensor<4x16xi64>", "tensor<64x8x64x128xf16>"
    text = f"""func.func @main(%i: {indices}, %t: {table}) -> {result} {{
      %0 = spyre.loop.gather [s = 4, p = 16, h = 8, m = 64, n = 128]
        rows(%i[s, p] : {indices}) of axis 0 in %t[0, h, m, n] : {table} -> [s * 16 + p, h, m, n] : {result}
      func.return %0 : {result}
    }}"""
    (step,) = steps(lowered(ops(passed(text), LoopGatherOp)[0]))
    assert [loop.extent for loop in step.space] == [4, 8, 16, 64, 128]
    assert step.inputs[1][0].shape == (400, 1, 64, 128)
    assert "part" in {name for name, _ in step.output[1][1].terms}, "the parts of the result are heads, too"


@pytest.mark.parametrize(
    ("heads", "lanes", "table", "result"),
    [(8, 3, (0, 2, 1, 3), (1, 0, 2, 3)), (8, 2, (0, 2, 3, 1), (1, 0, 3, 2)), (64, 3, (0, 2, 1, 3), (1, 0, 2, 3))],
    ids=["values", "keys", "more heads than cores"],
)
def test_heads_of_pages_that_are_joined_lie_outermost(
    heads: int, lanes: int, table: tuple[int, ...], result: tuple[int, ...]
) -> None:
    """Each head is a part, though all cores have indices: the product behind divides heads among the cores."""
    pages, out = f"tensor<50x64x{heads}x128xf16>", f"tensor<32x{heads}x2048x128xf16>"
    said = "" if lanes == 3 else " attributes {spyre.layout = #spyre.layout<lanes m>}"
    text = f"""func.func @main(%i: tensor<32x32xi64>, %t: {pages}) -> {out} {{
      %0 = spyre.loop.gather [s = 32, p = 32, m = 64, h = {heads}, n = 128] rows(%i[s, p] : tensor<32x32xi64>)
        of axis 0 in %t[0, m, h, n] : {pages} -> [s, h, p * 64 + m, n] : {out}{said}
      func.return %0 : {out}
    }}"""
    (step,) = steps(lowered(ops(passed(text), LoopGatherOp)[0]))
    assert [(loop.name, loop.extent) for loop in step.space][:3] == [("s", 32), ("part", heads), ("p", 32)]
    assert step.inputs[1][0].layout.order == table and step.inputs[1][0].shape[0] == 50 * heads
    assert step.output[0].layout.order == result
    assert [str(e) for e in step.output[1]] == ["s", "part", "p * 64 + m", "n"]


def heads(*numbers: int) -> list[LoopGatherOp]:
    """Gathers of single heads of 50 pages, each of 64 places, 8 heads and 128 features."""
    pages, out = "tensor<50x64x8x128xf16>", "tensor<4x1x2048x128xf16>"
    lines = "".join(
        f"""%{n} = spyre.loop.gather [s = 4, p = 32, m = 64, n = 128] rows(%i[s, p] : tensor<4x32xi64>)
        of axis 0 in %t[0, m, {head}, n] : {pages} -> [s, 0, p * 64 + m, n] : {out}\n"""
        for n, head in enumerate(numbers)
    )
    names, types = ", ".join(f"%{n}" for n in range(len(numbers))), ", ".join([out] * len(numbers))
    text = f"""func.func @main(%i: tensor<4x32xi64>, %t: {pages}) -> ({types}) {{
      {lines} func.return {names} : {types}
    }}"""
    return ops(passed(text), LoopGatherOp)


def test_single_heads_share_a_table_with_heads_outermost() -> None:
    first, second = heads(0, 5)
    p = lowered(first)
    lower_gather(p, second, SPYRE)
    one, other = steps(p)
    (numbers, _), (table, read) = one.inputs
    assert table.layout.order[:2] == (2, 0), "the pages of a head lie behind each other"
    assert [b for b, _ in other.inputs] == [numbers, table]
    assert [str(e[2]) for e in (read, other.inputs[1][1])] == ["0", "5"]


@pytest.mark.parametrize(("number", "fits"), [(0, True), (1, False)], ids=["a head", "a byte less"])
def test_a_core_has_to_reach_one_head(number: int, fits: bool) -> None:
    """All pages of a head are 50 x 64 places of two sticks; the cache is eight times as large."""
    (op,) = heads(3)
    p, spec = lowered(op), replace(SPYRE, span_bytes=50 * 64 * 2 * 128 - number)
    if fits:
        check_table(p, op, spec)
        return
    with pytest.raises(UnsupportedError, match="rows of a table of 819200 bytes"):
        check_table(p, op, spec)


@pytest.mark.parametrize("columns", [2000, 64])
def test_rows_without_whole_sticks_for_each_part_stay_whole(columns: int) -> None:
    (step,) = steps(lowered(gather(128, columns)))
    assert [loop.name for loop in step.space] == ["i", "n"]
