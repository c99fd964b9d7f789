"""Attention of a program as torch-spyre loops over it: one compiled tile stands for the kernels of the operation.

A tile is lowered as a program of its own, with queries, keys, values and masks in device memory. Of two plans of it the
quicker one counts: divisions by torch-spyre's rules, operation by operation, and what this compiler's planner finds
without loops of its own, in the place of torch-spyre's joint solver.

Decision: docs/decisions/0128-the-rivals-rules.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.places import source_of
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.machine.bundle.schedule import BundleLoop, Launch, launches
from spyre_mlir.options import PassOptions
from spyre_mlir.pipeline import LEVELS, lower
from spyre_mlir.planning.rival import RivalError
from spyre_mlir.planning.rival_attention import AttentionSizes, AttentionTiles, attention_tiles, tile_extents
from spyre_mlir.report.graphs.building import flat_copy, kernels_in
from spyre_mlir.report.timing import module_schedule, module_timeline

ATTENTION = "scaled_dot_product_attention"
_DIMS = 4  # batch, heads, rows, features
DL16_BYTES = 2
POSITIONS_FIRST = (0, 2, 1, 3)  # how import writes that heads of [batch, positions, heads, features] come first


@dataclass(frozen=True)
class Attention:
    """An attention of a program in torch-spyre's terms.

    Attributes:
        number: of the operation.
        sizes: its sizes.
        scale: of scores.
    """

    number: int
    sizes: AttentionSizes
    scale: float


def attentions(ops: Iterable[object]) -> list[Attention]:
    """Return the numbered attentions among ops that torch-spyre's rule covers: those with one batch dimension."""
    found = (_attention(op) for op in ops if isinstance(op, AtenOp) and op.overload == ATTENTION)
    return [one for one in found if one is not None]


def _attention(op: AtenOp) -> Attention | None:
    given = op.arguments()
    operands = [_operand(given.get(name)) for name in ("query", "key", "value", "attn_mask")]
    query, key, value, mask = [None if operand is None else shape_of(operand) for operand in operands]
    if query is None or key is None or value is None or not len(query) == len(key) == len(value) == _DIMS:
        return None
    if query[-1] != value[-1] or query[0] != key[0]:
        return None
    (batch, heads, queries, features), (_, own, keys, _) = query, key
    masks = [shape for shape in (mask, (queries, keys) if given.get("is_causal") else None) if shape is not None]
    try:
        sizes = AttentionSizes(
            batch=batch,
            heads=heads,
            kv_heads=own,
            queries=queries,
            keys=keys,
            features=features,
            masks=tuple(_mask(shape, heads, own) for shape in masks),
            staged_bytes=sum(_staged(operand) for operand in operands[:3] if operand is not None),
        )
    except RivalError:
        return None
    scale = given.get("scale")
    return Attention(source_of(op.location).number, sizes, scale if isinstance(scale, float) else features**-0.5)


def _operand(argument: object) -> SSAValue | None:
    return cast("SSAValue[Attribute]", argument) if isinstance(argument, SSAValue) else None


def _mask(shape: Sequence[int], heads: int, own: int) -> tuple[int, int, int, int, int]:
    """Extents of a mask along batch, heads of keys, query heads of one of these, queries and keys."""
    batch, of, queries, keys = (*(1,) * (_DIMS - len(shape)), *shape)
    return (batch, own, heads // own, queries, keys) if of == heads else (batch, of, 1, queries, keys)


def _staged(value: SSAValue) -> int:
    """Bytes that tiles of heads make move, twice all of a tensor whose positions come first in memory."""
    owner = value.owner
    if not isinstance(owner, AtenOp) or owner.overload != "permute" or owner.arguments()["dims"] != POSITIONS_FIRST:
        return 0
    return 2 * prod(shape_of(value)) * DL16_BYTES


@dataclass(frozen=True)
class PlacedItem:
    """A launch or a loop of a schedule.

    Attributes:
        item: the launch or the loop.
        ops: kernels of its launches in order, each with the number of its operation.
    """

    item: Launch | BundleLoop
    ops: tuple[tuple[int, KernelOp], ...]

    @property
    def number(self) -> int:
        """Number of the operation of a launch; 0 of loops."""
        return self.ops[0][0] if isinstance(self.item, Launch) else 0


@dataclass(frozen=True)
class TiledAttention:
    """An attention in tiles.

    Attributes:
        number: of the operation.
        tiles: what torch-spyre's rule selects.
        module: a tile at the level of kernels, without calls.
        files: the same at the last level.
    """

    number: int
    tiles: AttentionTiles
    module: ModuleOp
    files: ModuleOp

    @property
    def text(self) -> str:
        """How torch-spyre runs it, in words."""
        names = ("sequences", "heads of keys", "query heads", "queries")
        cuts = [f"{count} along {name}" for name, count in zip(names, self.tiles.counts, strict=False) if count > 1]
        where = f" ({', '.join(cuts)})" if cuts else ""
        return f"torch-spyre has {self.tiles.outer} tiles{where} with {self.tiles.blocks} blocks of keys"


def tiled(
    found: Iterable[Attention], spec: SpyreSpec, context: Context, ways: Sequence[PassOptions]
) -> dict[int, TiledAttention]:
    """Return by number the attentions that torch-spyre's rule cuts, each by the quickest of several plans.

    Args:
        found: attentions; equal ones are compiled once.
        spec: the card.
        context: dialects and passes.
        ways: options of passes, one for each plan.
    """
    known, cut = dict[tuple[AttentionSizes, float], TiledAttention | None](), dict[int, TiledAttention]()
    for one in found:
        key = one.sizes, one.scale
        if key not in known:
            known[key] = _tiled(one, spec, context, ways)
        if (tile := known[key]) is not None:
            cut[one.number] = replace(tile, number=one.number)
    return cut


def _tiled(
    attention: Attention, spec: SpyreSpec, context: Context, ways: Iterable[PassOptions]
) -> TiledAttention | None:
    """An attention in tiles; None without a loop."""
    from spyre_mlir.frontend import import_program
    from spyre_mlir.frontend.reference.tiled_attention import tile_call

    tiles = attention_tiles(attention.sizes, spec)
    if not tiles.looped:
        return None
    *rows, keys = tile_extents(attention.sizes, tiles)
    queries = (*rows, attention.sizes.features)
    extents = [*rows, keys * tiles.blocks]
    masks = [[min(own, extent) for own, extent in zip(mask, extents, strict=True)] for mask in attention.sizes.masks]
    call = tile_call(queries, keys * tiles.blocks, masks, blocks=tiles.blocks, scale=attention.scale)
    tile = import_program(*call).module
    plans = [lower(tile, context, options=options).modules for options in ways]
    best = min(plans, key=lambda modules: module_timeline(modules[LEVELS[-1]]).total_us)
    return TiledAttention(attention.number, tiles, flat_copy(best[LEVELS[2]]), best[LEVELS[-1]])


def with_tiles(items: Sequence[PlacedItem], tiles: Mapping[int, TiledAttention]) -> list[PlacedItem]:
    """Return a schedule in which a loop over tiles stands where launches of an attention stood.

    Args:
        items: launches and loops of the program.
        tiles: by number of the operation; those whose launches are in a loop stay as they are.
    """
    found, done = list[PlacedItem](), set[int]()
    for item in items:
        if (tile := tiles.get(item.number)) is None:
            found.append(item)
        elif item.number not in done:
            done.add(item.number)
            found.append(_loop(tile))
    return found


def _loop(tile: TiledAttention) -> PlacedItem:
    trips = tile.tiles.outer
    body = [
        replace(launch, loops=(trips,), opens=not at, buffers=tuple([f"{b} of {tile.number}" for b in launch.buffers]))
        for at, launch in enumerate(launches(module_schedule(tile.files).items))
    ]
    ops = tuple([(tile.number, op) for op in kernels_in(tile.module)])
    return PlacedItem(BundleLoop(trips, tuple(body)), ops)


__all__ = ["Attention", "PlacedItem", "TiledAttention", "attentions", "tiled", "with_tiles"]
