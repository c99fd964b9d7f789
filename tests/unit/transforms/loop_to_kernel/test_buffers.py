"""A tensor has one layout, whoever reads it: padding for one reader is seen by all, and stays within bounds."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.attributes import IterDim
from spyre_mlir.dialects.spyre.kernel_loop import BlockNumberOp, TileOp
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.sticks import LinearExpr, StickLayout
from spyre_mlir.transforms.loop_to_kernel.buffers import BlockBuffer, PlannedBuffer, elements_of
from tests.functions import FunctionModel
from tests.unit.transforms.loop_to_kernel.planning import tensor

f = torch.nn.functional


def numbers(*shape: int) -> torch.Tensor:
    return torch.randint(-8, 9, shape, generator=torch.Generator().manual_seed(sum(shape))).float()


def picks(rows: int, count: int) -> torch.Tensor:
    return torch.arange(count) * 3 % rows


def compiled_and_checked(function: Callable[..., Any], inputs: tuple[torch.Tensor, ...], at: Path) -> CompiledModel:
    """The program, after its results equalled torch's and the checker found nothing in its files."""
    model = FunctionModel(function)
    compiled = spyre_mlir.compile(model, inputs, numerics="exact")
    assert isinstance(compiled, CompiledModel)
    wanted = model(*inputs)
    got = compiled(*inputs)
    for one, other in zip(each(got), each(wanted), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-4)
    compiled.save(at)
    assert [str(finding) for finding in spyre_mlir.check(at)] == []
    assert compiled.host_steps == ()
    return compiled


def each(results: Any) -> tuple[Any, ...]:
    """All results of a function that gives one or several."""
    return cast(tuple[Any, ...], results) if isinstance(results, tuple) else (results,)


Pair = Callable[[Any, Any], Any]
READERS: dict[str, tuple[Pair, tuple[int, ...]]] = {
    "sum": (lambda x, i: (x[i], x.sum(1)), (5, 33, 3)),
    "index_select and mean": (lambda x, i: (torch.index_select(x, 0, i), x.mean(1)), (5, 31, 3)),
    "product": (lambda x, i: (x[i], torch.ones(4, 33) @ x), (2, 33, 70)),
    "conv1d": (lambda x, i: (f.relu6(x[i]), f.conv1d(x, torch.ones(2, 33, 1))), (5, 33, 3)),
    "turned": (lambda x, i: (x[i], x.transpose(1, 2) + 1), (5, 33, 3)),
    "two gathers": (lambda x, i: (x[i], torch.index_select(x, 1, i), x.sum(1)), (5, 33, 3)),
    "rank four": (lambda x, i: (x[i], x.sum(2), x.amax(1)), (3, 5, 33, 2)),
    "four-dimensional indices": (lambda x, i: (x[i.view(1, -1)], x.sum(1)), (5, 65, 2)),
    "of a column": (lambda x, i: (x[i], x.sum(0), x.t() + 1), (33, 65)),
    "put": (lambda x, i: (x.index_put((i,), torch.tensor(2.0)), x[i], x.sum(1)), (5, 33, 3)),
    "padded reader of what was gathered": (lambda x, i: (x[i].sum(1), x[i].transpose(1, 2) + 1, x.sum(1)), (5, 33, 3)),
}


@pytest.mark.parametrize("name", READERS)
def test_a_gather_beside_readers_that_pad_its_table(name: str, tmp_path: Path) -> None:
    function, shape = READERS[name]
    compiled_and_checked(function, (numbers(*shape), picks(min(shape[:2]), 7)), tmp_path / "bundle")


def interleaved(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """An interleaved rotary embedding of all tokens but the first, beside a product over tokens and a transposition."""
    q = x @ v
    rest = q[:, 1:]
    turned = torch.stack([-rest[..., 1::2], rest[..., ::2]], -1).reshape(rest.shape)
    return w @ q, turned, q.transpose(1, 2) + 1


@pytest.mark.parametrize(
    ("tokens", "width"),
    [(33, 70), pytest.param(257, 128, marks=pytest.mark.slow(reason="a larger tensor of the same layout"))],
)
def test_no_layout_is_the_common_multiple_of_two_extents(tokens: int, width: int, tmp_path: Path) -> None:
    """257 rows lie as 257 in one layout and as 320 in another: 320 serve both, 82,240 would too."""
    inputs = numbers(1, tokens, width), numbers(2, tokens), numbers(width, width) / 8
    compiled = compiled_and_checked(interleaved, inputs, tmp_path / "bundle")
    assert max(rows(compiled)) <= -(-max(tokens, width) // 64) * 64


def rows(compiled: CompiledModel) -> list[int]:
    """Every extent that some layout of the kernels reserves."""
    found = re.findall(r"extents \[([\d, ]+)\]", compiled.mlir("spyre.kernel"))
    return [int(number) for extents in found for number in extents.split(",")] or [0]


STRIDES: dict[str, Pair] = {
    "two strides": lambda x, w: (q := x + 1, (q[::30] * 2, q[::32] * 3))[1],
    "a stride and a transposition": lambda x, w: (q := x @ w, (q[::30] * 2, q.t() + 1, q[::35] + 1))[1],
    "a stride and a product": lambda x, w: (q := x @ w, (w @ q, q[1::35, 1::2] + 1, q[:, 1:] * 1))[1],
}


@pytest.mark.parametrize("function", STRIDES.values(), ids=STRIDES)
def test_readers_whose_strides_have_no_small_common_multiple(function: Callable[..., Any], tmp_path: Path) -> None:
    compiled = compiled_and_checked(function, (numbers(100, 100), numbers(100, 100) / 8), tmp_path / "bundle")
    assert max(rows(compiled)) <= 2 * 128


def test_a_layout_that_would_explode_is_refused() -> None:
    """Multiples of 30 and of 64 that hold 100: 960."""
    buffer = PlannedBuffer((100, 64), DL16.name, StickLayout.published((100, 64), 1, 64))
    buffer.pad(0, 30)
    assert buffer.layout.extents == (120, 64)
    assert not buffer.has_room(0, 64)
    with pytest.raises(LoweringError, match=r"dimension 0 of .*\[100, 64\] would take 960 .* 64, others of 30"):
        buffer.pad(0, 64)
    assert buffer.layout.extents == (120, 64)


def block() -> BlockBuffer:
    """Positions 64 to 127, say, of 256 rows of 100 numbers."""
    whole = PlannedBuffer((256, 100), DL16.name, StickLayout.published((256, 100), 1, 64))
    return BlockBuffer(whole, 0, 64, tensor(1))


def test_a_block_reserves_what_its_tensor_does() -> None:
    made = block()
    assert made.shape == (64, 100)
    assert made.layout is made.whole.layout
    made.pad(1, 192)
    assert made.whole.layout.extents == made.layout.extents == (256, 192)
    made.whole.reserve(0, 320)
    assert made.type.data.layout.extents == (320, 192)
    assert made.type.data.shape == (64, 100)
    assert made.unit(1) == made.whole.unit(1) == 192
    assert not made.has_room(0, 1, 10_000)
    made.reserve(0, 384)
    assert made.whole.layout.extents[0] == 384


def test_it_is_a_tile_at_a_number_of_the_host() -> None:
    made = block()
    number, tile = made.definition(tensor(1), made.position)
    assert isinstance(number, BlockNumberOp)
    assert isinstance(tile, TileOp)
    assert (number.size.value.data, number.extent.value.data) == (64, 256)
    assert (tile.dim.value.data, tile.step.value.data) == (0, 64)
    assert tile.result.type == made.type


def test_loops_over_a_whole_tensor_leave_out_single_elements() -> None:
    space, index = elements_of((4, 1, 6))
    assert space == (IterDim("d0", 4), IterDim("d2", 6))
    assert index == (LinearExpr.of("d0"), LinearExpr(), LinearExpr.of("d2"))
