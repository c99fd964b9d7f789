"""Rotations of parts of heads: known by the sum that each channel is, however a model writes them."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend import import_program
from spyre_mlir.transforms.aten_forms.recognition.rotations import Rotation, rotation_of
from tests.functions import FunctionModel
from tests.unit.transforms.aten_forms.rotations import (
    Form,
    apart,
    complex_pairs,
    halves,
    last,
    pairs_apart,
    some,
    sorted_pairs,
)


def rotations(form: Form, channels: int, width: int) -> list[Rotation]:
    """All rotations that a function ends."""
    given = torch.zeros(1, 1, 4, channels), torch.zeros(4, width), torch.ones(4, width)
    module = import_program(FunctionModel(form), given).module
    ops = [op for op in module.walk() if isinstance(op, AtenOp) and len(op.results) == 1]
    return [found for op in ops if (found := rotation_of(op)) is not None]


def places(found: Rotation, *, turned: bool = False) -> list[int | None]:
    """The places of factors in their tables."""
    factors = found.turned if turned else found.own
    return [None if factor is None else factor[1] for factor in factors]


@pytest.mark.parametrize(
    ("form", "width", "distance", "sorted_first", "own"),
    [
        (some, 4, 2, False, [0, 1, 2, 3, None, None, None, None]),
        (last, 4, 2, False, [None, None, None, None, 0, 1, 2, 3]),
        (apart, 4, 4, False, [0, 1, 2, 3, 0, 1, 2, 3]),
        (sorted_pairs, 4, 4, True, [0, 1, 2, 3, 0, 1, 2, 3]),
        (pairs_apart, 4, 1, False, [0, 0, 1, 1, 2, 2, 3, 3]),
        (complex_pairs, 4, 1, False, [0, 0, 1, 1, 2, 2, 3, 3]),
    ],
)
def test_parts_are_known(form: Form, width: int, distance: int, sorted_first: bool, own: list[int | None]) -> None:
    (found,) = rotations(form, 8, width)
    assert (found.distance, found.apart) == (distance, sorted_first)
    assert places(found) == places(found, turned=True) == own
    assert len({factor[0] for factor in found.own if factor is not None}) == 1
    assert {f[0] for f in found.own if f is not None} != {f[0] for f in found.turned if f is not None}


def other_sign(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos + second * sin, second * cos + first * sin), -1)


def three_terms(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin + first, second * cos + first * sin), -1)


def two_factors(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos * sin - second * sin, second * cos + first * sin), -1)


def twice_the_sum(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((torch.sub(first * cos, second * sin, alpha=2), second * cos + first * sin), -1)


def squares(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat((first * first - second * sin, second * cos + first * sin), -1)


def exchanged(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    part, rest = x.chunk(2, -1)
    return torch.cat((rest, part * cos + halves(part) * sin), -1)


def without_a_rest(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return torch.cat((x[..., :4] * cos + sin, x[..., 4:]), -1)


@pytest.mark.parametrize(
    "form", [other_sign, three_terms, two_factors, twice_the_sum, squares, exchanged, without_a_rest]
)
def test_anything_else_is_no_rotation(form: Form) -> None:
    assert rotations(form, 8, 4) == []
