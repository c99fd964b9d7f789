"""Nests that write a part of a tensor: which are dropped, and which something reads."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre.host import LoopHostOp
from spyre_mlir.dialects.spyre.loop import EmptyOp, NestOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.transforms.utils.nests.unread_parts import drop_unread_parts
from tests.unit.dialects.texts import lines_of, read
from tests.unit.transforms.levels import ops

X = "tensor<4x4xf32>"
COPY = "{\n^bb0(%t: f32):\nspyre.loop.yield %t : f32\n}"


def part(name: str, rows: str, into: str, space: str = "m = 2, n = 4", source: str = "%x") -> str:
    """A nest that writes some rows of a tensor."""
    return f"%{name} = spyre.loop.nest [{space}] ins({source}[m, n] : {X}) into {into} -> [{rows}, n] : {X} {COPY}"


def reader(name: str, source: str, rows: str = "m", space: str = "m = 2, n = 4") -> str:
    """A nest that reads two rows of a tensor."""
    return f"%{name} = spyre.loop.nest [{space}] ins({source}[{rows}, n] : {X}) -> [m, n] : tensor<2x4xf32> {COPY}"


ADDED = "{\n^bb0(%t: f32, %u: f32):\n%v = arith.addf %t, %u : f32\nspyre.loop.yield %v : f32\n}"


def rows_0_and_2(source: str) -> str:
    """A nest that adds two rows of a tensor, and reads nothing between them."""
    reads = f"{source}[0, n] : {X}, {source}[m + 2, n] : {X}"
    return f"%out = spyre.loop.nest [m = 1, n = 4] ins({reads}) -> [m, n] : tensor<1x4xf32> {ADDED}"


def left(*lines: str, result: str = "tensor<2x4xf32>") -> list[NestOp]:
    """The nests that stay of a program whose last line defines the result %out."""
    body = "\n".join((f"%e = spyre.loop.empty : {X}", *lines))
    module = read(f"func.func @main(%x: {X}, %y: {X}) -> {result} {{\n{body}\nfunc.return %out : {result}\n}}")
    (function,) = functions(module)
    drop_unread_parts(function)
    module.verify()
    assert len(ops(module, EmptyOp)) == 1
    return ops(module, NestOp)


def test_the_end_of_a_concatenation_that_a_slice_leaves_out_goes() -> None:
    first, out = left(part("a", "m", "%e"), part("b", "m + 2", "%a"), reader("out", "%b"))
    assert out.inputs[0] is first.result


def test_the_start_of_a_concatenation_that_a_slice_leaves_out_goes() -> None:
    second, out = left(part("a", "m", "%e"), part("b", "m + 2", "%a"), reader("out", "%b", "m + 2"))
    assert out.inputs[0] is second.result
    assert second.dest is not None and isinstance(second.dest.owner, EmptyOp)


def test_what_only_an_unread_part_needs_goes_with_it() -> None:
    negated = f"%s = spyre.loop.nest [m = 4, n = 4] ins(%y[n, m] : {X}) -> [m, n] : {X} {COPY}"
    assert len(left(negated, part("a", "m", "%e"), part("b", "m + 2", "%a", source="%s"), reader("out", "%b"))) == 2


def test_what_another_needs_too_stays() -> None:
    moved = f"%s = spyre.loop.nest [m = 4, n = 4] ins(%y[n, m] : {X}) -> [m, n] : {X} {COPY}"
    both = (part("a", "m", "%e", source="%s"), part("b", "m + 2", "%a", source="%s"))
    assert len(left(moved, *both, reader("out", "%b"))) == 3


@pytest.mark.parametrize("rows", ["m + 1", "m * 2", "m * -3 + 3"])
def test_a_part_that_is_read_in_part_stays(rows: str) -> None:
    assert len(left(part("a", "m", "%e"), part("b", "m + 2", "%a"), reader("out", "%b", rows))) == 3


def test_a_later_part_of_the_same_tensor_reads_for_its_readers() -> None:
    """The third nest writes row 3 into what the second one made; row 2 is read behind it."""
    last = part("c", "m + 3", "%b", space="m = 1, n = 4")
    assert len(left(part("a", "m", "%e"), part("b", "m + 2", "%a"), last, reader("out", "%c", "m + 1"))) == 3
    assert len(left(part("a", "m", "%e"), part("b", "m + 2", "%a"), last, reader("out", "%c"))) == 2


def test_what_is_returned_stays() -> None:
    assert len(left(part("a", "m", "%e"), part("out", "m + 2", "%a"), result=X)) == 2


def test_what_the_host_reads_stays() -> None:
    module = read(
        f"func.func @main(%x: {X}) -> {X} {{\n%e = spyre.loop.empty : {X}\n{part('a', 'm', '%e')}\n"
        f'%out = spyre.loop.host "aten.sort" (%a) : ({X}) -> {X}\nfunc.return %out : {X}\n}}'
    )
    before = lines_of(module)
    drop_unread_parts(functions(module)[0])
    assert len(ops(module, LoopHostOp)) == 1 and lines_of(module) == before


def test_a_tensor_shrinks_to_the_part_that_is_left() -> None:
    """Rows 2 and 3 stay, as rows 0 and 1 of a tensor of two rows."""
    second, out = left(part("a", "m", "%e"), part("b", "m + 2", "%a"), reader("out", "%b", "m + 2"))
    assert shape_of(second.result) == (2, 4)
    assert [str(e) for e in second.output_map.data] == ["m", "n"]
    assert [str(e) for e in out.input_maps[0].data] == ["m", "n"]


def test_every_reader_follows_a_tensor_that_shrinks() -> None:
    also = f"%s = spyre.loop.nest [m = 1, n = 4] ins(%b[m + 1, n] : {X}) -> [m, n] : tensor<1x4xf32> {COPY}"
    read_once = f"%out = spyre.loop.nest [m = 1, n = 4] ins(%b[m * 2 + 1, n] : {X}, %s[m, n] : tensor<1x4xf32>) "
    last = f"{read_once} -> [m, n] : tensor<1x4xf32> {ADDED}"
    rows = [part("a", "m", "%e", "m = 1, n = 4"), part("b", "m + 1", "%a", "m = 3, n = 4")]
    writer, *readers = left(*rows, also, last, result="tensor<1x4xf32>")
    assert shape_of(writer.result) == (3, 4)
    assert [str(nest.input_maps[0].data[0]) for nest in readers] == ["m", "m * 2"]


def test_an_unread_part_between_two_that_are_read_stays() -> None:
    """Kernels may go through all rows from the first to the last."""
    rows = [part(n, f"m + {at}", f"%{d}", "m = 1, n = 4") for n, at, d in (("a", 0, "e"), ("b", 1, "a"), ("c", 2, "b"))]
    assert len(left(*rows, rows_0_and_2("%c"), result="tensor<1x4xf32>")) == 4


def test_an_unread_part_between_two_goes_if_another_nest_writes_it() -> None:
    wide, narrow = part("a", "m", "%e", "m = 3, n = 4"), part("b", "m + 1", "%a", "m = 1, n = 4")
    first, out = left(wide, narrow, rows_0_and_2("%b"), result="tensor<1x4xf32>")
    assert out.inputs[0] is first.result and shape_of(first.result) == (3, 4)


def test_a_tensor_with_a_part_in_between_that_leaves_places_out_keeps_what_fills_them() -> None:
    """The first nest writes rows 0 and 2 only."""
    rows = part("a", "m * 2", "%e"), part("b", "m + 1", "%a", "m = 1, n = 4")
    assert len(left(*rows, rows_0_and_2("%b"), result="tensor<1x4xf32>")) == 3


def test_a_tensor_that_is_more_than_its_parts_keeps_its_shape() -> None:
    """What nests write into a tensor that was there before, such as an argument."""
    (out,) = left(part("a", "m + 2", "%x"), reader("out", "%a"))
    assert shape_of(out.inputs[0]) == (4, 4)
