"""Numbers of the compiler that choose between two forms of an operation, and a call on either side of each.

A form that small shapes never reach is a form that nobody tests. Whoever adds such a number adds it here, or says in
`no_form.py` why no result depends on it: `test_thresholds.py` finds every number that the passes and compositions
compare sizes with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from tests.end_to_end.ops.threshold_inputs import Made, also, distinct, drawn, pooled, recurrent, whole

FLOATS = (torch.float32, torch.float16, torch.bfloat16)
NEVER = 2**62


@dataclass(frozen=True)
class Threshold:
    """A function whose form depends on a number of the compiler.

    Attributes:
        places: the number, by the modules that compare with it: ``ops.positions.MOST_SELECTED``.
        function: a function of tensors; `near` and `far` take its place where the sides differ in a constant.
        small: few inputs. Their form is the near one, and the far one if the number is `patched`.
        real: inputs on either side of the number as it is.
        patched: the number that takes `small` to the other side.
        always: numbers that have to be others on both sides for `small` to reach the place.
        floats: whether it computes with floats.
        host: whether the far side is a step that the host runs.
    """

    places: tuple[str, ...]
    function: Callable[..., Any]
    small: Made
    real: tuple[Made, Made]
    patched: float = 0
    always: Mapping[str, float] = field(default_factory=dict[str, float])
    floats: bool = True
    host: bool = False
    near: Callable[..., Any] | None = None
    far: Callable[..., Any] | None = None

    @property
    def patches(self) -> dict[str, float]:
        """The numbers under which `small` takes the far form."""
        return dict.fromkeys(self.places, self.patched)


def index_put(x: Tensor, values: Tensor, i: Tensor, j: Tensor) -> Tensor:
    return x.index_put((i, j), values)


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def of_heads(x: Tensor, matrix: Tensor) -> Tensor:
    return x.view(*x.shape[:2], 2, -1).transpose(1, 2) @ matrix


def unpooled(x: Tensor, places: Tensor) -> Tensor:
    return functional.max_unpool2d(x, places, 2)


def sampled(x: Tensor, grid: Tensor) -> Tensor:
    return functional.grid_sample(x, grid, align_corners=False)


def recurrent_layers(x: Tensor, states: Tensor, w: Tensor, v: Tensor) -> Tensor:
    layers = len(states)
    return torch.ops.aten.rnn_tanh.input(x, states, [w, v] * layers, False, layers, 0.0, False, False, False)[0]


def from_computed(table: Tensor, indices: Tensor) -> Tensor:
    return functional.embedding(indices + 0, table)


def reversed_dimensions(x: Tensor) -> Tensor:
    return x.permute(*reversed(range(x.ndim))).contiguous() * 2


def of_other_batches(x: Tensor, y: Tensor) -> Tensor:
    return torch.matmul(x.transpose(0, -3), y.transpose(0, -3))


POSITIONS = "ops.helpers.index_matching.MOST_SELECTED"
ORDERINGS = "ops.composed.reductions.sorting.MOST"
SHORT = 2**20  # elements of a square of comparisons, see ops/scans.py
THRESHOLDS: dict[str, Threshold] = {
    "merged_groups": Threshold(
        ("ops.composed.nn.convolution._MERGED",),
        lambda x, w: functional.conv1d(x, w, groups=32),
        drawn((1, 64, 2), (32, 2, 1)),
        (drawn((1, 256, 2), (32, 8, 1)), drawn((1, 512, 2), (64, 8, 1))),
        far=lambda x, w: functional.conv1d(x, w, groups=64),
    ),
    "channels_of_groups": Threshold(
        ("ops.helpers.group_means._LANES",),
        lambda x: functional.group_norm(x, 3, eps=1e-2),
        drawn((1, 6, 5)),
        (drawn((1, 63, 5)), drawn((1, 66, 5))),
        patched=5,
    ),
    "one_column": Threshold(
        ("ops.native.contractions._LANES",),
        torch.matmul,
        drawn((6, 5), (5, 1)),
        (drawn((2, 63, 5), (2, 5, 1)), drawn((2, 65, 5), (2, 5, 1))),
        patched=5,
    ),
    "filled_channels": Threshold(
        ("ops.composed.nn.convolution._FEWEST",),
        functional.conv1d,
        drawn((1, 9, 4), (2, 9, 2)),
        (drawn((1, 8, 4), (2, 8, 2)), drawn((1, 7, 4), (2, 7, 2))),
        patched=NEVER,
    ),
    "rows_of_channels": Threshold(
        ("ops.helpers.depthwise._WIDEST",),
        lambda x, w: functional.conv2d(x, w, groups=2).amax(1),
        drawn((1, 2, 2, 34), (2, 1, 2, 14)),
        (drawn((1, 2, 2, 128), (2, 1, 2, 14)), drawn((1, 2, 2, 129), (2, 1, 2, 14))),
    ),
    "taps_of_channels": Threshold(
        ("ops.helpers.depthwise._MOST_TAPS",),
        lambda x, w: functional.conv2d(x, w, groups=2).amax(1),
        drawn((1, 2, 2, 34), (2, 1, 2, 2)),
        (drawn((1, 2, 5, 40), (2, 1, 5, 5)), drawn((1, 2, 2, 40), (2, 1, 2, 13))),
    ),
    "parts_of_flip": Threshold(
        ("ops.composed.indexing.rearrangement.MOST_PARTS",),
        lambda x: x.flip(-1),
        drawn((3, 5)),
        (drawn((4, 16)), drawn((4, 17))),
    ),
    "parts_of_unfold": Threshold(
        ("ops.composed.indexing.rearrangement.MOST_PARTS",),
        lambda x: x.unfold(-1, 5, 2),
        drawn((3, 11)),
        (drawn((3, 37)), drawn((3, 37))),
        near=lambda x: x.unfold(-1, 5, 2),
        far=lambda x: x.unfold(-1, 17, 1),
    ),
    "causal_attention": Threshold(
        ("ops.composed.nn.attention.CAUSAL_BLOCK",),
        causal,
        drawn((1, 2, 12, 8), (1, 2, 12, 8), (1, 2, 12, 8)),
        (drawn(*[(1, 2, 512, 16)] * 3), drawn(*[(1, 2, 1024, 16)] * 3)),
        patched=4,
    ),
    "unequal_causal_blocks": Threshold(
        ("ops.composed.nn.attention.CAUSAL_NUMBERS",),
        causal,
        drawn(*[(1, 2, 20, 8)] * 3),
        (drawn(*[(1, 1, 2560, 16)] * 3), drawn(*[(1, 1, 4096, 16)] * 3)),
        always={"ops.composed.nn.attention.CAUSAL_BLOCK": 4, "ops.composed.nn.attention.CAUSAL_STEP": 2},
    ),
    "selected_by_flip": Threshold(
        (POSITIONS,),
        lambda x: x.flip(-1),
        drawn((3, 20)),
        (drawn((16, 64)), drawn((17, 64))),
    ),
    "selected_by_index_put": Threshold(
        (POSITIONS,),
        index_put,
        also(drawn((6, 5), (4,)), whole((4,), (4,), high=5)),
        (
            also(drawn((64, 64), (16,)), whole((16,), (16,), high=64)),
            also(drawn((64, 64), (80,)), whole((80,), (80,), high=64)),
        ),
    ),
    "compared_places": Threshold(
        ("ops.helpers.index_matching.MOST_COMPARISONS",),
        index_put,
        also(drawn((6, 5), (4,)), whole((4,), (4,), high=5)),
        (
            also(drawn((128, 128), (256,)), whole((256,), (256,), high=128)),
            also(drawn((2, 16385), (4100,)), whole((4100,), (4100,), high=2)),
        ),
        host=True,
    ),
    "slices": Threshold(
        ("ops.composed.nn.resampling.MOST_SLICES",),
        lambda x: functional.interpolate(x, scale_factor=1.5, mode="nearest"),
        drawn((1, 1, 7)),
        (drawn((1, 2, 60)), drawn((1, 2, 140))),
    ),
    "weights_of_a_grid": Threshold(
        ("ops.composed.nn.grid_sampling.MOST_WEIGHTS",),
        sampled,
        drawn((1, 2, 4, 5), (1, 2, 3, 2), low=-0.9, high=0.9),
        (
            drawn((1, 2, 32, 32), (1, 32, 32, 2), low=-0.9, high=0.9),
            drawn((1, 1, 64, 65), (1, 64, 64, 2), low=-0.9, high=0.9),
        ),
        host=True,
    ),
    "unpooled": Threshold(
        ("ops.composed.nn.pooling.MOST_COMPARED",),
        unpooled,
        pooled(1, 2, 6, 4),
        (pooled(1, 1, 64, 64), pooled(1, 2, 64, 64)),
        host=True,
    ),
    "square_of_cumsum": Threshold(
        ("ops.composed.reductions.cumulative.SQUARE",),
        lambda x: x.cumsum(-1),
        drawn((2, 9)),
        (drawn((1, 1024)), drawn((2, 1024))),
    ),
    "square_of_cummax": Threshold(
        ("ops.composed.reductions.cumulative.SQUARE",),
        lambda x: x.cummax(-1),
        distinct(2, 9),
        (distinct(1, 1024), distinct(2, 1024)),
    ),
    "square_of_logcumsumexp": Threshold(
        ("ops.composed.reductions.cumulative.SQUARE",),
        lambda x: x.logcumsumexp(0),
        drawn((9, 2)),
        (drawn((1024, 1)), drawn((1024, 2))),
    ),
    "square_of_sort": Threshold(
        ("ops.composed.reductions.sorting.SQUARE",),
        lambda x: x.sort(stable=True),
        distinct(3, 9),
        (distinct(2, 1448), distinct(3, 1448)),  # one row alone is never divided
    ),
    "square_of_mode": Threshold(
        ("ops.composed.reductions.sorting.SQUARE",),
        lambda x: x.mode(-1),
        distinct(3, 9),
        (distinct(1, 2048), distinct(2, 2048)),
        host=True,
    ),
    "most_of_topk": Threshold(
        (ORDERINGS,), lambda x: x.topk(2), distinct(3, 9), (distinct(16, 2048), distinct(17, 2048))
    ),
    "most_of_sort": Threshold(
        (ORDERINGS,),
        lambda x: x.sort(stable=True, descending=True),
        distinct(3, 9),
        (distinct(16, 2048), distinct(17, 2048)),
        host=True,
    ),
    "picked": Threshold(
        ("ops.composed.reductions.sorting.CAP",),
        lambda x: x.topk(3),
        distinct(3, 9),
        (distinct(17, 2048), distinct(17, 2048)),
        always={ORDERINGS: 0},
        host=True,
        near=lambda x: x.topk(30),
        far=lambda x: x.topk(63),
    ),
    "picks": Threshold(
        ("ops.composed.reductions.sorting.PICK",),
        lambda x: x.topk(3),
        distinct(3, 9),
        (distinct(17, 2048), distinct(17, 2048)),
        patched=NEVER,
        always={ORDERINGS: 0},
        host=True,
        near=lambda x: x.topk(20),
        far=lambda x: x.topk(63),
    ),
    "powers": Threshold(
        ("ops.composed.math.powers._LARGEST_WHOLE",),
        lambda x: x**5,
        drawn((2, 3), low=0.9, high=1.1),
        (drawn((2, 3), low=0.9, high=1.1), drawn((2, 3), low=0.9, high=1.1)),
        host=True,
        near=lambda x: x**64,
        far=lambda x: x**65,
    ),
    "softplus": Threshold(
        ("ops.native.activations._LINEAR",),
        lambda x: functional.softplus(x, beta=1.3, threshold=20),
        drawn((2, 30), low=-30, high=30),
        (drawn((2, 30), low=-30, high=30), drawn((2, 30), low=-30, high=30)),
        patched=NEVER,
        near=lambda x: functional.softplus(x, beta=1.3, threshold=20),
        far=lambda x: functional.softplus(x, beta=1.3, threshold=17),
    ),
    "computed_rows": Threshold(
        ("transforms.aten_to_loop.gathers.MOST_COMPARISONS",),
        from_computed,
        also(drawn((6, 3)), whole((4,), high=6)),
        (
            also(drawn((1024, 3)), whole((512,), high=1024)),
            also(drawn((8193, 2)), whole((8192,), high=8193)),
        ),
        host=True,
    ),
    "whole_products": Threshold(
        ("transforms.aten_to_loop.contractions.MOST_WHOLE_PRODUCTS",),
        torch.matmul,
        whole((3, 4), (4, 5)),
        (whole((64, 256), (256, 128)), whole((256, 257), (257, 256))),
        floats=False,
        host=True,
    ),
    "loops_of_rows": Threshold(
        ("transforms.aten_to_loop.contractions.MOST_ROW_LOOPS",),
        torch.matmul,
        drawn((3, 4, 5), (5, 6)),
        (drawn((3, 4, 5), (5, 6)), drawn((2, 3, 4, 5), (5, 6))),
        patched=-1,
    ),
    "columns_in_batches": Threshold(
        ("transforms.aten_to_loop.contractions.MOST_COLUMNS_IN_BATCHES",),
        of_heads,
        drawn((2, 3, 10), (5, 3)),
        (drawn((2, 256, 10), (5, 256)), drawn((2, 257, 10), (5, 257))),
    ),
    "loops_of_batches": Threshold(
        ("transforms.aten_to_loop.contractions.MOST_BATCH_LOOPS",),
        of_other_batches,
        drawn((2, 3, 4, 5), (2, 3, 5, 6)),
        (drawn((2, 3, 4, 5), (2, 3, 5, 6)), drawn((2, 2, 3, 4, 5), (2, 2, 3, 5, 6))),
        patched=-1,
    ),
    "kernels": Threshold(
        ("transforms.decompose_aten.CAP",),
        recurrent_layers,
        recurrent(2),
        (recurrent(8), recurrent(8, layers=60)),
        host=True,
    ),
    "steps": Threshold(
        ("ops.composed.nn.recurrent.MOST_UNROLLED",),
        recurrent_layers,
        recurrent(4),
        (recurrent(8), recurrent(9)),
        patched=2,
    ),
    "loops_of_a_copy": Threshold(
        ("transforms.aten_to_loop.loop_builder.MOST_LOOPS", "transforms.aten_to_loop.coalesced_loops.MOST_LOOPS"),
        reversed_dimensions,
        drawn((2, 3, 2, 3, 2)),
        (drawn((2, 3, 2, 3, 2, 2)), drawn((2, 3, 2, 3, 2, 2, 3))),
        patched=4,
    ),
}

# Numbers that elements are compared with as the program runs: both sides are in one call.
BY_VALUE: dict[str, tuple[tuple[str, ...], Callable[..., Any], Made]] = {
    "asinh": (("ops.composed.math.exponentials._LARGE",), torch.asinh, drawn((2, 40), low=0, high=40000)),
    "acosh": (("ops.composed.math.exponentials._LARGE",), torch.acosh, drawn((2, 40), low=1, high=40000)),
    "erfinv": (
        ("ops.composed.math.special_functions._ERFINV_SPLIT",),
        torch.erfinv,
        drawn((2, 40), low=-0.999, high=0.999),
    ),
}
