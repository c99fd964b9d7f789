"""Pass `part-caches`: which attentions to pages are one for each head."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.ops.composed.nn.paged_attention import COMPUTE, COMPUTE_WITH_SINKS
from spyre_mlir.transforms.aten_forms.part_caches import PartCachesPass
from spyre_mlir.universe import make_context
from tests.fms_operators import LIBRARIES

assert LIBRARIES
# 20 pages of 64 places and one stick of features, of each of four heads.
HEAD = 20 * 64 * 128


class Attention(nn.Module):
    def __init__(self, *, computed: bool = False, sunk: bool = False) -> None:
        super().__init__()
        self.computed, self.sunk = computed, sunk

    def forward(self, q: Tensor, keys: Tensor, values: Tensor, ends: Tensor, table: Tensor, sinks: Tensor) -> Tensor:
        where = ends, ends - ends, table + 1 if self.computed else table
        if self.sunk:
            return torch.ops.spyre.paged_attn_compute_with_sinks(q, keys, values, 0.5, *where, sinks, 9)
        return torch.ops.spyre.paged_attn_compute(q, keys, values, 0.5, *where)


def parted(reach: int, *, computed: bool = False, sunk: bool = False) -> list[AtenOp]:
    """The attentions behind the pass."""
    half = {"dtype": torch.float16, "device": "meta"}
    q, cache, sinks = torch.empty(2, 1, 8, 64, **half), torch.empty(20, 64, 4, 64, **half), torch.empty(8, **half)
    ends, table = (torch.empty(*s, dtype=torch.int64, device="meta") for s in ((2,), (2, 3)))
    module = import_program(Attention(computed=computed, sunk=sunk), (q, cache, cache, ends, table, sinks)).module
    PartCachesPass().apply(make_context(replace(SPYRE, span_bytes=reach)), module)
    module.verify()
    return [o for o in module.walk() if isinstance(o, AtenOp) and o.overload in (COMPUTE, COMPUTE_WITH_SINKS)]


@pytest.mark.parametrize(
    ("reach", "count"),
    [(4 * HEAD, 1), (4 * HEAD - 1, 4), (HEAD, 4), (HEAD - 1, 1)],
    ids=["all heads in reach", "all but one byte", "one head", "less than one head"],
)
def test_heads_are_parted_where_one_is_in_reach_and_all_are_not(reach: int, count: int) -> None:
    assert len(parted(reach)) == count


def test_each_head_has_its_queries_and_its_sinks() -> None:
    made = parted(HEAD, sunk=True)
    assert len(made) == 4
    for number, op in enumerate(made):
        args = op.arguments()
        shapes = {name: shape_of(args[name]) for name in ("query", "key_cache", "value_cache", "sinks")}  # pyright: ignore[reportArgumentType]
        assert shapes == {
            "query": (2, 1, 2, 64),
            "key_cache": (20, 64, 1, 64),
            "value_cache": (20, 64, 1, 64),
            "sinks": (2,),
        }
        starts = [args[name].owner.arguments()["start"] for name in ("query", "key_cache", "value_cache", "sinks")]  # pyright: ignore
        assert starts == [2 * number, number, number, 2 * number]


def test_computed_pages_are_not_gathered_anyway() -> None:
    assert len(parted(HEAD, computed=True)) == 1
