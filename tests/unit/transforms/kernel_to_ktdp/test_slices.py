"""The way from one tensor of a slice to another: the elements are where numpy's indexing has them."""

from __future__ import annotations

from math import prod
from random import Random
from typing import Any

import numpy as np
import pytest

from spyre_mlir.transforms.kernel_to_ktdp.slices import Recast, SliceForm, recast, same_elements

RADIX = (1, 2, 3, 4, 6)


def places(form: SliceForm) -> Any:
    found = np.asarray(form.offset)
    for stride, count in form.dims:
        found = found[..., None] + np.arange(count) * stride
    return found


def followed(values: Any, steps: Recast) -> Any:
    values = values.reshape(steps.split)
    if steps.hull is not None:
        wider = np.zeros(steps.hull, values.dtype)
        wider[tuple(slice(at, at + n) for at, n in zip(steps.place, steps.split, strict=True))] = values
        values = wider
    values = values[tuple(slice(at, at + n) for at, n in zip(steps.first, steps.sizes, strict=True))]
    return values.reshape(steps.squeezed).transpose(steps.order).reshape(steps.shape)


def random_form(random: Random, radix: list[int]) -> SliceForm:
    """A box of a slice whose extents are `radix`, dimensions merged, split and turned at random."""
    dims, offset = list[tuple[int, int]](), 0
    for place, extent in enumerate(radix):
        base, first = prod(radix[place + 1 :]), random.choice([0, random.randrange(extent)])
        offset += first * base
        dims.append((base, extent if first == 0 and random.random() < 0.7 else random.randint(1, extent - first)))
    place = 0
    while place + 1 < len(dims):
        (outer, count), (inner, steps) = dims[place : place + 2]
        if steps * inner == outer and random.random() < 0.5:
            dims[place : place + 2] = [(inner, count * steps)]
        else:
            place += 1
    random.shuffle(dims)
    return SliceForm(offset, tuple(dims))


@pytest.mark.parametrize("seed", range(20))
def test_elements_keep_their_places(seed: int) -> None:
    random, found = Random(seed), 0
    for _ in range(50):
        radix = [random.choice(RADIX) for _ in range(4)]
        memory = np.arange(1, prod(radix) + 1)
        source, target = random_form(random, radix), random_form(random, radix)
        steps = recast(source, target)
        if steps is None:
            continue
        found += 1
        have, want = places(source), places(target)
        got = followed(memory[have], steps)
        assert np.array_equal(got, np.where(np.isin(want, have), memory[want], 0)), (source, target)
        assert same_elements(source, target) == (set(have.ravel()) == set(want.ravel()))
    assert found > 25


def test_strides_without_common_parts_have_no_way() -> None:
    assert recast(SliceForm(0, ((3, 4), (1, 3))), SliceForm(0, ((4, 3), (1, 4)))) is None


def test_the_same_form_takes_no_steps() -> None:
    form = SliceForm(0, ((64, 8), (1, 64)))
    steps = recast(form, form)
    assert steps is not None and steps.hull is None and steps.sizes == steps.split == form.shape
