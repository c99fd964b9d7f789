"""Pass `put-pages`: stores the tokens of prompts in caches that the program overwrites page by page.

```mlir
%new:2 = aten.call "spyre::paged_attn_store"(%key, %value, %keys, %values, %slots) : (tensor<1x128x8x64xf16>, …)
```
with caches `tensor<32x64x8x64xf16>` becomes, for the keys,
```mlir
%0 = aten.call "spyre::put_page"(%keys, %first, %slots) {dim = 0, number = 0, count = 64} …
%1 = aten.call "spyre::put_page"(%0, %second, %slots) {dim = 0, number = 64, count = 64} …
```
Servers give a prompt whole pages, so each run of 64 slots is one page from its first place on. The host looks at the
slots of a call before anything runs; with other ones, the call is that of a program without this pass.

Decision: docs/decisions/0253-prompts-fill-whole-pages.md
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from spyre_mlir.dialects.spyre.loop_blocks import BLOCK
from spyre_mlir.dialects.tensors import element_of, integer_bits, shape_of
from spyre_mlir.ops.native.entries import PUT_PAGE
from spyre_mlir.transforms.aten_forms.put_entries import MOST_ENTRIES
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, unshaped
from spyre_mlir.transforms.utils.host_stores import StoreWriter, host_stores, rewrite_stores
from spyre_mlir.transforms.utils.stored_entries import StoredEntries

# Each page has kernels of its own: more would take seconds to plan.
MOST_PAGES = 64


@dataclass(frozen=True)
class PutPagesPass(ModulePass):
    """Lets kernels write pages of overwritten arguments, where sequences bring a page of tokens or more."""

    name = "put-pages"

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the functions that take tensors of the host."""
        for found in host_stores(op):
            rewrite_stores([one for one in found if _fills_pages(one)], _page_by_page)


def _fills_pages(found: StoredEntries) -> bool:
    """Whether each sequence has a page of tokens, its last one may be less, and the cache has room for all pages.

    Positions in one dimension may be those of many sequences, each with one token, unless there are too many of these.
    """
    if found.per % BLOCK or integer_bits(element_of(found.old)):
        return False
    positions = shape_of(found.positions)
    many = len(positions) > 1 or found.count > MOST_ENTRIES
    if not many or max(positions[-1:]) < found.per:
        return False
    return len(_runs(found)) <= min(MOST_PAGES, shape_of(found.old)[found.dim])


def _runs(found: StoredEntries) -> list[tuple[int, int]]:
    """The first positions of all pages, and how many tokens each gets."""
    *_, tokens = shape_of(found.positions)
    sequences = found.count // tokens
    inside = [(at, min(found.per, tokens - at)) for at in range(0, tokens, found.per)]
    return [(sequence * tokens + at, count) for sequence in range(sequences) for at, count in inside]


def _page_by_page(writer: AtenWriter, _first: StoredEntries) -> StoreWriter:
    return lambda one: _stored(writer, one)


def _stored(writer: AtenWriter, found: StoredEntries) -> SSAValue:
    """The tensor with all pages replaced, one behind the other: of two that are one page, the later one stays."""
    shape, dim, made = shape_of(found.old), found.dim, found.old
    behind = shape[dim + 2 :]
    source = writer.viewed(found.source, (*shape[:dim], found.count, *behind))
    for number, count in _runs(found):
        page = writer.call("slice.Tensor", self=source, dim=dim, start=number, end=number + count, step=1)
        if count < found.per:
            beyond = [0, 0] * len(behind) + [0, found.per - count]
            page = writer.call("constant_pad_nd", self=page, pad=beyond, value=0.0)
        entry = writer.viewed(page, (*shape[:dim], 1, *shape[dim + 1 :]))
        where = {"positions": unshaped(found.positions), "dim": dim, "number": number, "count": count}
        made = writer.call(PUT_PAGE, self=made, entry=entry, **where)
    return made


__all__ = ["MOST_PAGES", "PutPagesPass"]
