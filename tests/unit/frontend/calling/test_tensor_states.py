"""States of tensors: every write shows, whether torch counts it or not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.calling.tensor_states import (
    BLOCK_WORDS,
    PAGE_BYTES,
    TensorState,
    assign,
    fills_memory,
    glances,
    holds,
    is_parameter,
    reader_of,
    version_of,
    write,
)


def _swap(x: torch.Tensor) -> None:
    x.data[[0, 1]] = x.data[[1, 0]]


WRITES: dict[str, Callable[[torch.Tensor], object]] = {
    "counted": lambda x: x.add_(1),
    "by data": lambda x: x.data.add_(1),
    "by numpy": lambda x: x.numpy().fill(3),
    "rows swapped": _swap,
    "one bit": lambda x: x.data.view(torch.int32)[0, 0].bitwise_xor_(1),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_changes_the_state(write: Callable[[torch.Tensor], object]) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    before = TensorState.of(x)
    assert before.lasts(x)
    write(x)
    assert not before.lasts(x)


def test_without_contents_torchs_count_decides() -> None:
    x = torch.zeros(3)
    before = TensorState.of(x, contents=False)
    assert not before.lasts(x), "nobody looked at the elements"
    x.data.add_(1)
    assert before.lasts(x, contents=False)
    x.add_(1)
    assert not before.lasts(x, contents=False)


@pytest.mark.parametrize(
    "x", [torch.zeros(0), torch.zeros(()), torch.ones(2, 3).T, torch.ones(2, dtype=torch.bfloat16)]
)
def test_any_tensor_has_a_state(x: torch.Tensor) -> None:
    assert TensorState.of(x).lasts(x)


def test_tensors_of_inference_have_no_count_but_their_elements() -> None:
    with torch.inference_mode():
        x = torch.arange(6.0)
        before, state = version_of(x), TensorState.of(x, contents=False)
        assert state.lasts(x, contents=False)
        x.add_(1)
        assert version_of(x) != before and not state.lasts(x, contents=False)


def test_tensors_of_inference_are_written_outside_of_it() -> None:
    with torch.inference_mode():
        x = torch.zeros(2)
    write(x, torch.ones(2))
    assert x.tolist() == [1, 1]
    y = torch.zeros(2, requires_grad=True)
    write(y, torch.ones(2))
    assert (y.tolist(), y.is_leaf) == ([1, 1], True)


def test_holds_is_exact_and_nan_is_itself() -> None:
    x = torch.tensor([1.0, float("nan")])
    assert holds(x, np.array([1.0, np.nan]))
    assert not holds(x, np.array([1.0 + 1e-12, np.nan]))
    assert not holds(torch.ones(1, dtype=torch.bfloat16), np.array([1 + 2.0**-10]))
    assert holds(torch.tensor([3]), np.array([3]))


def test_assign_writes_in_place() -> None:
    x = torch.zeros(2, requires_grad=True)
    assign(x, np.array([1.0, 2.0]))
    assert x.tolist() == [1, 2]


def test_a_tensor_is_read_later() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    for tensor in (x, x.T, x[1:, ::2], x.to(torch.bfloat16), torch._neg_view(x), torch.ones(())):
        read = reader_of(tensor)
        assert np.array_equal(read(), tensor.float().resolve_neg().numpy())
    read = reader_of(x)
    x.add_(1)
    assert read()[0, 0] == 1


def test_memory_that_is_gone_cannot_be_read() -> None:
    read = reader_of(torch.ones(2))
    with pytest.raises(InputError, match="the tensor is gone"):
        read()


def test_a_tensor_that_may_be_read_later_can_be_swapped() -> None:
    x, y = torch.zeros(2), torch.ones(2)
    read = reader_of(x)
    torch.utils.swap_tensors(x, y)
    assert read().tolist() == [0, 0]


def test_parameters() -> None:
    layer = torch.nn.Linear(2, 2)
    assert is_parameter(layer.weight)
    assert not is_parameter(layer.weight.detach())


def test_whole_tensors_fill_their_memory() -> None:
    x = torch.zeros(4, 6, dtype=torch.bfloat16)
    assert [fills_memory(y) for y in (x, x.T, x.view(-1), x[1:], x[:, ::2])] == [True, True, True, False, False]


def test_of_large_tensors_all_bytes_are_looked_at() -> None:
    """Of 16 pages every fourth is digested; the sums show writes to the rest, and also an exchange of two blocks."""
    x = torch.zeros(16 * PAGE_BYTES // 4)
    for place in (0, PAGE_BYTES // 4, PAGE_BYTES, 3 * PAGE_BYTES, -1):
        last = glances([x], 4 * PAGE_BYTES)
        x.data[place] += 1
        assert glances([x], 4 * PAGE_BYTES) != last, place
        assert glances([x], 4 * PAGE_BYTES) == glances([x.clone()], 4 * PAGE_BYTES)
    y = torch.zeros(4 * BLOCK_WORDS, dtype=torch.int64)
    y[5000], z = 1, y.roll(BLOCK_WORDS)
    assert glances([y], PAGE_BYTES) != glances([z], PAGE_BYTES)
    assert glances([torch.empty(3, device="meta")]) == ()


def test_sums_of_tensors_that_begin_anywhere() -> None:
    x = torch.arange(3 * PAGE_BYTES, dtype=torch.uint8)
    for start in range(9):
        part = x[start:]
        before = glances([part], PAGE_BYTES)
        part.data[PAGE_BYTES + 7] += 1
        assert glances([part], PAGE_BYTES) != before
        assert glances([x[start : start + 3]], 1) == glances([x[start : start + 3].clone()], 1)
