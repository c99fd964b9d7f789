"""Elements read at computed places, against an interpolation between the neighbours of every place."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import spyre_mlir
from spyre_mlir.errors import ConstraintError, UnsupportedError
from spyre_mlir.ops.composed.nn import grid_sampling
from spyre_mlir.ops.composed.nn.grid_sampling import BORDER, CUBICALLY, LINEAR, NEAREST, REFLECTION, ZEROS
from tests.unit.ops.cases import Array, agree, budgets, check_samples, result

MODULE = "spyre_mlir.ops.composed.nn.grid_sampling"

RNG = np.random.default_rng(4)
A = -0.75  # the coefficient of cubic convolution that torch documents


def folded(place: float, low: float, high: float) -> float:
    """A place between two mirrors."""
    if low == high:
        return 0.0
    way = abs(place - low) % (2 * (high - low))
    return low + min(way, 2 * (high - low) - way)


def place_of(coordinate: float, extent: int, outside: int, align: bool) -> float:
    """The place of a coordinate from -1 to 1, as torch documents it."""
    place = (coordinate + 1) / 2 * (extent - 1) if align else ((coordinate + 1) * extent - 1) / 2
    if outside == REFLECTION:
        place = folded(place, 0, extent - 1) if align else folded(place, -0.5, extent - 0.5)
    return place if outside == ZEROS else min(max(place, 0), extent - 1)


def shares(place: float, mode: int) -> dict[int, float]:
    """How much each neighbour gives."""
    first = int(np.floor(place))
    t = place - first
    if mode == LINEAR:
        return {first: 1 - t, first + 1: t}

    def near(d: float) -> float:
        return ((A + 2) * d - (A + 3)) * d * d + 1

    def far(d: float) -> float:
        return ((A * d - 5 * A) * d + 8 * A) * d - 4 * A

    return {first - 1: far(1 + t), first: near(t), first + 1: near(1 - t), first + 2: far(2 - t)}


def sampled(x: Array, grid: Array, mode: int, outside: int, align: bool) -> Array:
    """Place by place; neighbours outside are 0."""
    extents = x.shape[2:]
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for n, *at in np.ndindex(*grid.shape[:-1]):
        places = [place_of(c, e, outside, align) for c, e in zip(grid[(n, *at)][::-1], extents, strict=True)]
        for neighbours in product(*(shares(p, mode).items() for p in places)):
            where = [i for i, _ in neighbours]
            if all(0 <= i < e for i, e in zip(where, extents, strict=True)):
                out[(n, slice(None), *at)] += x[(n, slice(None), *where)] * np.prod([s for _, s in neighbours])
    return out


IMAGE, CUBE = RNG.normal(size=(2, 3, 4, 5)), RNG.normal(size=(1, 2, 3, 4, 2))
SHAPES = [(IMAGE, RNG.uniform(-1.7, 1.7, (2, 4, 3, 2))), (CUBE, RNG.uniform(-3.4, 3.4, (1, 2, 3, 2, 3)))]


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("outside", [ZEROS, BORDER, REFLECTION])
@pytest.mark.parametrize(("x", "grid"), SHAPES)
def test_places_between_elements(x: Array, grid: Array, outside: int, align: bool) -> None:
    facts = {"interpolation_mode": LINEAR, "padding_mode": outside, "align_corners": align}
    wanted = sampled(x, grid, LINEAR, outside, align)
    agree(result("grid_sampler", x, grid, **facts), wanted, rtol=1e-9, atol=1e-12)
    name = f"grid_sampler_{x.ndim - 2}d"
    agree(result(name, x, grid, **facts), wanted, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("align", [False, True])
def test_cubic_interpolation(align: bool) -> None:
    x, grid = SHAPES[0]
    facts = {"interpolation_mode": CUBICALLY, "padding_mode": ZEROS, "align_corners": align}
    agree(result("grid_sampler", x, grid, **facts), sampled(x, grid, CUBICALLY, ZEROS, align), rtol=1e-9, atol=1e-12)


def test_corners_are_the_middles_of_elements_or_their_edges() -> None:
    row = np.array([10.0, 20.0, 30.0]).reshape(1, 1, 1, 3)
    grid = np.array([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]).reshape(1, 1, 3, 2)
    facts: dict[str, Any] = {"interpolation_mode": LINEAR, "padding_mode": ZEROS}
    agree(result("grid_sampler", row, grid, align_corners=True, **facts), [[[[10.0, 20.0, 30.0]]]])
    # Half of what lies beyond an edge is 0.
    agree(result("grid_sampler", row, grid, align_corners=False, **facts), [[[[5.0, 20.0, 15.0]]]])


def test_one_element_reflects_to_itself() -> None:
    x, grid = np.full((1, 1, 1, 1), 7.0), np.array([-3.0, 0.5]).reshape(1, 1, 1, 2)
    facts = {"interpolation_mode": LINEAR, "padding_mode": REFLECTION}
    agree(result("grid_sampler", x, grid, align_corners=True, **facts), x)
    agree(result("grid_sampler", x, grid, align_corners=False, **facts), x)


def test_torch_numbers_the_modes() -> None:
    assert (LINEAR, NEAREST, CUBICALLY) == (ZEROS, BORDER, REFLECTION) == (0, 1, 2)


@pytest.mark.parametrize("outside", [BORDER, REFLECTION])
def test_a_cubic_border_is_refused(outside: int) -> None:
    facts = {"interpolation_mode": CUBICALLY, "padding_mode": outside, "align_corners": False}
    with pytest.raises(UnsupportedError, match='at the border of a grid\n  try: padding_mode="zeros" is possible'):
        result("grid_sampler", *SHAPES[0], **facts)


def test_the_nearest_place_is_refused() -> None:
    facts = {"interpolation_mode": NEAREST, "padding_mode": ZEROS, "align_corners": False}
    with pytest.raises(UnsupportedError, match="the nearest place: of coordinates with ten significant bits"):
        result("grid_sampler", *SHAPES[0], **facts)


@pytest.mark.parametrize(("most", "refused"), [(2 * 12 * 20, False), (2 * 12 * 20 - 1, True)])
def test_many_weights_are_left_to_the_host(most: int, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grid_sampling, "MOST_WEIGHTS", most)
    facts = {"interpolation_mode": LINEAR, "padding_mode": ZEROS, "align_corners": False}
    if refused:
        with pytest.raises(UnsupportedError, match="12 places among 20 elements, 2 times"):
            result("grid_sampler", *SHAPES[0], **facts)
    else:
        assert result("grid_sampler", *SHAPES[0], **facts).shape == (2, 3, 4, 3)


def test_a_place_has_a_coordinate_per_dimension() -> None:
    facts = {"interpolation_mode": LINEAR, "padding_mode": ZEROS, "align_corners": False}
    with pytest.raises(ConstraintError, match="C1: 3 coordinates for 2 dimensions"):
        result("grid_sampler", IMAGE, np.zeros((2, 4, 3, 3)), **facts)


def test_errors_that_are_allowed() -> None:
    assert budgets(MODULE) == {"grid_sampler": (48, False)}


def test_samples_fit() -> None:
    check_samples(MODULE)


def test_places_near_the_middle_of_a_grid_are_fine() -> None:
    """Counted from the end, places near 32 would be rounded to multiples of 1/32."""

    class Sampled(nn.Module):
        def forward(self, image: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
            return functional.grid_sample(image, grid, align_corners=False)

    image = (torch.arange(64) % 2).float().expand(1, 1, 1, 64).contiguous()
    grid = torch.stack([torch.linspace(-0.03, 0.03, 16), torch.zeros(16)], -1)[None, None].half().float()
    got = spyre_mlir.compile(Sampled(), (image, grid))(image, grid)
    assert (got - Sampled()(image, grid)).abs().max() < 2e-3
