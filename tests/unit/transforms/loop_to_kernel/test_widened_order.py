"""Rows in the order of FP32 lanes: by one walk, or part by part where a file has too few labels for the loops."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.transforms.loop_to_kernel.widened_order import reorderings
from tests.functions import FunctionModel


def patches(x: Tensor) -> Tensor:
    windows = x.unfold(2, 3, 1).unfold(3, 3, 1).permute(0, 2, 3, 1, 4, 5)
    return windows.reshape(x.shape[0], -1, x.shape[1] * 9)


def columns(x: Tensor) -> Tensor:
    """Sticks of one element take a label, too."""
    return x.unfold(1, 4, 2).unfold(2, 4, 2).permute(0, 3, 4, 1, 2).reshape(x.shape[0] * 16, -1)


@pytest.mark.parametrize(
    ("program", "shape"), [(patches, (2, 70, 10, 9)), (patches, (1, 130, 9, 9)), (columns, (65, 20, 9))]
)
def test_a_tensor_with_too_many_loops_is_reordered(program: Callable[[Tensor], Tensor], shape: tuple[int, ...]) -> None:
    x = torch.arange(float(torch.Size(shape).numel())).reshape(shape) % 2048
    made = spyre_mlir.compile(FunctionModel(program), (x,), keep_float32=True)
    torch.testing.assert_close(made(x), program(x), rtol=0, atol=0)
    assert made.verify(x)


@pytest.mark.parametrize(("stick", "parts"), [(1, 2), (2, 3)])
def test_the_parts_are_the_whole(stick: int, parts: int) -> None:
    """The shortest dimension is taken apart, but not that in the sticks."""
    shape, seen = (70, 4, 2, 3, 3, 3), set[tuple[int, ...]]()
    made = reorderings(shape, 0, stick)
    assert len(made) == parts
    for space, plain, lanes in made:
        assert len(space) <= 8
        for point in product(*(range(d.extent) for d in space)):
            at = dict(zip((d.name for d in space), point, strict=True))
            read, write = (tuple(e.const + sum(f * at[n] for n, f in e.terms) for e in m) for m in (plain, lanes))
            assert read[1:] == write[1:]
            assert read not in seen
            seen.add(read)
    assert seen == set(product(range(128), *map(range, shape[1:])))
