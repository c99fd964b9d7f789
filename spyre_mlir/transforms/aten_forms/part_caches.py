"""Pass `part-caches`: attends to one head of a cache in pages at a time, where a core reaches no more of the cache.

```mlir
%r = aten.call "spyre::paged_attn_compute"(%q, %keys, …) : (tensor<32x1x32x128xf16>, tensor<4096x64x8x128xf16>, …
```
becomes, for each of the 8 heads,
```mlir
%q0 = aten.slice.Tensor(%q) {dim = 2, start = 0, end = 4} : (tensor<32x1x32x128xf16>) -> tensor<32x1x4x128xf16>
%k0 = aten.slice.Tensor(%keys) {dim = 2, start = 0, end = 1} : (tensor<4096x64x8x128xf16>) -> tensor<4096x64x1x128xf16>
%r0 = aten.call "spyre::paged_attn_compute"(%q0, %k0, …) : (tensor<32x1x4x128xf16>, tensor<4096x64x1x128xf16>, …
```
and the results are joined. All cores gather from one start, and may be asked for any page: with the heads of a cache
outermost, the pages of one head are what they have to reach.

Decision: docs/decisions/0246-caches-beyond-reach-are-read-head-by-head.md
"""

from __future__ import annotations

from dataclasses import dataclass

from typing_extensions import override
from xdsl.dialects import func
from xdsl.ir import BlockArgument, SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import element_of, shape_of
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.hw.sticks import StickLayout
from spyre_mlir.ops.composed.nn.paged_attention import COMPUTE, COMPUTE_WITH_SINKS
from spyre_mlir.transforms.loop_to_kernel.buffers import stored_format
from spyre_mlir.transforms.loop_to_kernel.layout_planner import block_of, lanes_of
from spyre_mlir.transforms.utils.aten_ops import AtenWriter, arguments_of, erase_unread, is_open, unshaped
from spyre_mlir.transforms.utils.function_pass import FunctionPass

_HEADS = 2  # the dimension of heads, in queries and in caches


@dataclass(frozen=True)
class PartCachesPass(FunctionPass):
    """Writes attention to a cache beyond a core's reach as one for each of its heads."""

    name = "part-caches"

    @override
    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Rewrite every attention to pages whose table the host has."""
        for op in list(function.body.block.ops):
            if isinstance(op, AtenOp) and op.overload in (COMPUTE, COMPUTE_WITH_SINKS) and is_open(op):
                args = arguments_of(op)
                caches = (args["key_cache"], args["value_cache"])
                if isinstance(unshaped(args["block_table"]), BlockArgument) and _is_parted(caches, spec):
                    _rewrite(op)


def _is_parted(caches: tuple[SSAValue, ...], spec: SpyreSpec) -> bool:
    """Whether a core reaches the pages of each head of all caches, and not of all heads of one."""
    heads = [_bytes(c, 1) for c in caches]
    return max(heads) <= spec.span_bytes < max(_bytes(c, shape_of(c)[_HEADS]) for c in caches)


def _bytes(cache: SSAValue, heads: int) -> int:
    """The bytes of so many heads of a cache on the device."""
    pages, places, _, features = shape_of(cache)
    form = stored_format(element_of(cache))
    layout = StickLayout.rows_outermost((pages, places, heads, features), 3, block_of(form))
    return layout.sticks(lanes_of(form)) * STICK_BYTES


def _rewrite(op: AtenOp) -> None:
    writer, args = AtenWriter(op), arguments_of(op)
    heads = shape_of(args["key_cache"])[_HEADS]
    shared = shape_of(args["query"])[_HEADS] // heads

    def part(name: str, dim: int, head: int, each: int) -> SSAValue:
        return writer.call("slice.Tensor", self=args[name], dim=dim, start=head * each, end=(head + 1) * each, step=1)

    made = list[SSAValue]()
    for head in range(heads):
        own = {name: part(name, _HEADS, head, 1) for name in ("key_cache", "value_cache")}
        own["query"] = part("query", _HEADS, head, shared)
        if "sinks" in args:
            own["sinks"] = part("sinks", 0, head, shared)
        made.append(writer.call(op.overload, **{**args, **own}))
    joined = writer.call("cat", tensors=made, dim=_HEADS)
    joined.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(joined)
    erase_unread(op)


__all__ = ["PartCachesPass"]
