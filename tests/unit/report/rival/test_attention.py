"""Attentions of a program in the terms of torch-spyre's rule, and loops over their tiles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.ir.modules import ops_in
from spyre_mlir.dialects.places import numbered
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.machine.bundle.schedule import BundleLoop, Launch, launches
from spyre_mlir.planning.rival_attention import AttentionSizes
from spyre_mlir.report.rival import attention
from spyre_mlir.report.rival.attention import Attention, PlacedItem, TiledAttention, attentions, tiled, with_tiles
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel

SMALL = replace(SPYRE, lx_usable_bytes=20 * 1024)


def imported(call: Callable[..., Tensor], *shapes: tuple[int, ...]) -> ModuleOp:
    """A program in half precision with numbered operations."""
    inputs = tuple(torch.zeros(shape, dtype=torch.float16, device="meta") for shape in shapes)
    module = import_program(FunctionModel(call), inputs).module
    numbered(ops_in(module))
    return module


def sizes(call: Callable[..., Tensor], *shapes: tuple[int, ...]) -> list[AttentionSizes]:
    """Sizes of the attentions of a program."""
    return [one.sizes for one in attentions(ops_in(imported(call, *shapes)))]


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    return scaled_dot_product_attention(q, k, v, mask, enable_gqa=True)


QUERIES, KEYS = (2, 8, 128, 64), (2, 2, 256, 64)


def test_heads_that_share_keys_are_groups() -> None:
    (found,) = sizes(attend, QUERIES, KEYS, KEYS)
    assert found == AttentionSizes(batch=2, heads=8, kv_heads=2, queries=128, keys=256, features=64)


@pytest.mark.parametrize(
    ("mask", "extents"),
    [
        ((128, 256), (1, 1, 1, 128, 256)),
        ((2, 1, 1, 256), (2, 1, 1, 1, 256)),
        ((2, 8, 128, 256), (2, 2, 4, 128, 256)),
    ],
)
def test_masks_are_walked_by_their_extents(mask: tuple[int, ...], extents: tuple[int, ...]) -> None:
    assert sizes(attend, QUERIES, KEYS, KEYS, mask)[0].masks == (extents,)


def test_a_causal_attention_has_a_mask_of_all_keys() -> None:
    (found,) = sizes(lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True), *[(1, 2, 64, 32)] * 3)
    assert found.masks == ((1, 1, 1, 64, 64),)


def test_heads_that_lie_between_positions_are_staged() -> None:
    """Keys and values, of 2 x 256 x 2 x 64 numbers of two bytes each, are read and written once more."""
    (found,) = sizes(lambda q, k, v: attend(q, k.transpose(1, 2), v.transpose(1, 2)), QUERIES, *[(2, 256, 2, 64)] * 2)
    assert found.staged_bytes == 2 * 2 * (2 * 256 * 2 * 64) * 2


def test_what_the_rule_does_not_cover_is_left_out() -> None:
    assert not sizes(attend, *[(4, 16, 32)] * 3)
    assert not sizes(attend, (1, 2, 16, 32), (1, 2, 16, 32), (1, 2, 16, 64))


def test_a_scale_is_that_of_the_model() -> None:
    found = attentions(ops_in(imported(lambda q: scaled_dot_product_attention(q, q, q, scale=0.5), (1, 2, 64, 32))))
    assert [one.scale for one in found] == [0.5]
    found = attentions(ops_in(imported(lambda q: scaled_dot_product_attention(q, q, q), (1, 2, 64, 64))))
    assert [one.scale for one in found] == [0.125]


def in_tiles() -> TiledAttention:
    """An attention that a small scratchpad cuts."""
    wanted = Attention(3, AttentionSizes(heads=4, kv_heads=2, queries=128, keys=128, features=64), 0.125)
    return tiled([wanted], SMALL, make_context(SMALL), [{"plan": {"loops": False}}])[3]


KERNEL = cast("KernelOp", None)  # nothing here looks at kernels or descriptors
LAUNCH = Launch("any", cast("Descriptor", None), ())


def loop(tile: TiledAttention) -> BundleLoop:
    """What stands in the place of a launch."""
    (found,) = with_tiles([PlacedItem(LAUNCH, ((tile.number, KERNEL),))], {tile.number: tile})
    assert isinstance(found.item, BundleLoop)
    return found.item


def test_a_tile_stands_where_the_first_launch_stood() -> None:
    tile = in_tiles()
    names = {"before": 2, "first": 3, "second": 3, "behind": 4}
    items = [PlacedItem(replace(LAUNCH, file=name), ((number, KERNEL),)) for name, number in names.items()]
    found = with_tiles(items, {3: tile})
    assert [one.item.file if isinstance(one.item, Launch) else "loop" for one in found] == ["before", "loop", "behind"]
    assert {number for number, _ in found[1].ops} == {3}
    assert len(found[1].ops) == len(list(launches((found[1].item,))))


def test_launches_in_a_loop_stay() -> None:
    inside = [PlacedItem(BundleLoop(2, (LAUNCH,)), ((3, KERNEL),))]
    assert with_tiles(inside, {3: in_tiles()}) == inside


def test_its_launches_run_once_for_each_tile() -> None:
    tile = in_tiles()
    body = list(launches((loop(tile),)))
    assert tile.tiles.outer > 1 and {launch.trips for launch in body} == {tile.tiles.outer}
    assert [launch.opens for launch in body] == [1, *[0] * (len(body) - 1)]


def test_equal_attentions_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = Attention(3, AttentionSizes(heads=4, kv_heads=2, queries=128, keys=128, features=64), 0.125)
    compiled, real = list[object](), attention.lower
    monkeypatch.setattr(attention, "lower", lambda *given, **named: compiled.append(given) or real(*given, **named))
    found = tiled([wanted, replace(wanted, number=7)], SMALL, make_context(SMALL), [{}])
    assert [tile.number for tile in found.values()] == [3, 7] and len(compiled) == 1
    assert found[3].module is found[7].module


def test_its_text_says_what_is_cut() -> None:
    assert in_tiles().text == "torch-spyre has 2 tiles (2 along heads of keys) with 2 blocks of keys"


def test_an_attention_that_fits_has_no_tiles() -> None:
    wanted = Attention(1, AttentionSizes(heads=4, kv_heads=2, queries=128, keys=128, features=64), 0.125)
    assert tiled([wanted], SPYRE, make_context(), [{}]) == {}
