"""An entry is replaced in its block where the host says where that is, else in all of the tensor."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.dialects.spyre.loop_blocks import BlockOp, NamedEntry, PutOp
from spyre_mlir.dialects.tensors import shape_of
from tests.unit.transforms.levels import ops, passed

CACHE, ENTRY = "tensor<4x64x2x8xf16>", "tensor<1x1x2x8xf16>"


def text(notes: str) -> str:
    types = f"{CACHE}, {ENTRY}, tensor<2x1xi64>, tensor<1xf32>"
    call = f'aten.call "spyre::put_entry"(%x, %e, %at, %p) {{dim = 0, number = 1, per = 64}} {notes} : ({types})'
    arguments = f"%x: {CACHE}, %e: {ENTRY}, %at: tensor<2x1xi64>, %p: tensor<1xf32>"
    return f"func.func @main({arguments}) -> {CACHE} {{ %0 = {call} -> {CACHE} func.return %0 : {CACHE} }}"


def test_a_page_is_put_back() -> None:
    module = passed(text("attributes {spyre.placed}"), "convert-aten-to-spyre-loop")
    page, numbers = ops(module, BlockOp)
    (put,) = ops(module, PutOp)
    assert shape_of(page.result) == (1, 64, 2, 8) and shape_of(numbers.result) == (64,)
    assert NamedEntry.of(page) == NamedEntry.of(put) == NamedEntry(from_end=True, number=1, per=64)
    assert NamedEntry.of(numbers) == NamedEntry(from_end=True, number=1), "numbers of places count by one"


@pytest.mark.parametrize("notes", [""])
def test_all_of_it_is_made_anew(notes: str) -> None:
    module = passed(text(notes), "convert-aten-to-spyre-loop")
    assert not ops(module, BlockOp)
    assert [shape_of(op.result) for op in ops(module, NestOp)] == [(256,), (4, 64, 2, 8)]


@pytest.mark.parametrize(("count", "blocks"), [(64, 0), (40, 1)])
def test_a_page_is_written_whole_or_selected(count: int, blocks: int) -> None:
    page = "tensor<1x64x2x8xf16>"
    types = f"{CACHE}, {page}, tensor<1x128xi64>"
    call = f'aten.call "spyre::put_page"(%x, %e, %at) {{dim = 0, number = 64, count = {count}}} : ({types})'
    arguments = f"%x: {CACHE}, %e: {page}, %at: tensor<1x128xi64>"
    text = f"func.func @main({arguments}) -> {CACHE} {{ %0 = {call} -> {CACHE} func.return %0 : {CACHE} }}"
    module = passed(text, "convert-aten-to-spyre-loop")
    (put,) = ops(module, PutOp)
    assert NamedEntry.of(put) == NamedEntry(from_end=True, number=64, per=64, run=count)
    assert [shape_of(block.result) for block in ops(module, BlockOp)] == [(1, 64, 2, 8)] * blocks
    assert not [op for op in ops(module, NestOp) if shape_of(op.result) == (4, 64, 2, 8)], "nothing walks the cache"
