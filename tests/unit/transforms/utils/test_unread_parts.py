"""Nests that write a part of a tensor: which are dropped, and which something reads."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.spyre.host import LoopHostOp
from spyre_mlir.dialects.spyre.loop import EmptyOp, NestOp
from spyre_mlir.transforms.utils.rebuild import functions
from spyre_mlir.transforms.utils.unread_parts import drop_unread_parts
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
