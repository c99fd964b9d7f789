"""Loops that the program keeps are those of many slices whose bodies are calls of real numbers that at most draw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops.map import map as map_slices
from torch._higher_order_ops.scan import scan
from torch.export import Dim

from spyre_mlir.frontend.capture.control_flow.kept import is_loop
from spyre_mlir.frontend.capture.control_flow.long_loops import number_of_slices, stays_loop
from spyre_mlir.frontend.capture.control_flow.unrolled import unroll_loops
from tests.functions import FunctionModel


def plain(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (torch.tanh(c + row), c * 2), h, x, dim=0)


def mapped(x: Tensor, h: Tensor) -> Any:
    return map_slices(torch.exp, x), h + 1


def drawing(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c + torch.rand_like(row), c * 2), h, x, dim=0)


def of_complex_numbers(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (torch.complex(c, row).abs(), c * 2), h, x, dim=0)


def writing(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c + row, torch.empty_like(c).normal_()), h, x, dim=0)


def with_a_loop(x: Tensor, h: Tensor) -> Any:
    return scan(lambda c, row: (c + row, map_slices(torch.exp, c)), h, x, dim=0)


@pytest.mark.parametrize(
    ("program", "slices", "stays"),
    [
        (plain, 9, True), (plain, 8, False), (mapped, 9, True), (drawing, 9, True), (of_complex_numbers, 9, False),
        (with_a_loop, 9, True), (writing, 9, False),
    ],
)  # fmt: skip
def test_loops_that_stay(program: Callable[..., Any], slices: int, stays: bool) -> None:
    exported = torch.export.export(FunctionModel(program), (torch.ones(slices, 3), torch.zeros(3)))
    (loop,) = filter(is_loop, exported.graph.nodes)
    assert number_of_slices(loop) == slices
    assert stays_loop(loop) is stays
    assert any(map(is_loop, unroll_loops(exported).graph.nodes)) is stays
    assert not any(map(is_loop, unroll_loops(exported, symbolic=True).graph.nodes))


@pytest.mark.parametrize(("program", "stays"), [(plain, True), (of_complex_numbers, False), (writing, False)])
def test_sizes_of_slices_may_be_symbols(program: Callable[..., Any], stays: bool) -> None:
    batch = Dim("batch", min=2, max=8)
    args = torch.ones(9, 3), torch.zeros(3)
    exported = torch.export.export(FunctionModel(program), args, dynamic_shapes=(({1: batch}, {0: batch}),))
    (loop,) = filter(is_loop, exported.graph.nodes)
    assert stays_loop(loop) is stays


def test_a_number_of_slices_that_is_a_symbol_does_not_stay() -> None:
    args = torch.ones(9, 3), torch.zeros(3)
    exported = torch.export.export(FunctionModel(mapped), args, dynamic_shapes=(({0: Dim("n", min=2)}, None),))
    (loop,) = filter(is_loop, exported.graph.nodes)
    assert not stays_loop(loop)
