"""Masks and counts that a model makes of numbers are known when it is traced."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.errors import UnsupportedError
from tests.functions import FunctionModel

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))


def rows(x: Tensor) -> Tensor:
    return x[torch.tensor([True, False, True])] * 2


def diagonal_blocks(x: Tensor) -> Tensor:
    keep = torch.arange(4)[None] <= torch.arange(3)[:, None]
    return x[keep] + 1


def columns(x: Tensor) -> Tensor:
    return x[1:, torch.arange(4) % 2 == 1]


def with_more(x: Tensor) -> Tensor:
    return x[None][:, torch.tensor([False, True, True]), ..., 1:]


def put(x: Tensor) -> Tensor:
    y = x.clone()
    y[torch.tensor([True, False, True])] = 0.0
    return y


KNOWN: dict[str, Callable[[Tensor], Any]] = {
    "rows": rows,
    "two_dimensions": diagonal_blocks,
    "columns_of_a_part": columns,
    "beside_other_indices": with_more,
    "none_at_all": lambda x: x[torch.zeros(3, dtype=torch.bool)],
    "negated": lambda x: x[~torch.tensor([True, False, True])],
    "masked_select": lambda x: x.masked_select(torch.tensor([True, False, True, True])),
    "repeated_rows": lambda x: x.repeat_interleave(torch.tensor([1, 2, 0]), dim=0),
    "repeated_elements": lambda x: torch.repeat_interleave(x[:, 0], torch.tensor([1, 2, 0])),
    "repeated_as_often": lambda x: x.repeat_interleave(torch.tensor([2]), 1),
    "positions": lambda x: x[torch.tensor([0, 1, 1]).nonzero()[:, 0]],
    "a_list": lambda x: x[[True, False, True]],
    "combinations": lambda x: torch.combinations(x[0], 3) * 2,
    "combinations_with_repetitions": lambda x: torch.combinations(x[:, 0], with_replacement=True),
    "more_than_there_are": lambda x: torch.combinations(x[:2, 0], 3),
    "of_none": lambda x: torch.combinations(x[0], 0),
    "written": put,
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_masks_and_counts(name: str) -> None:
    compiled = spyre_mlir.compile(FunctionModel(KNOWN[name]), (X,), numerics="exact", host_fallback="error")
    for x in (X, X + 3):
        torch.testing.assert_close(compiled(x), KNOWN[name](x))


class OfModel(nn.Module):
    """A mask in a plain attribute belongs to the program."""

    def __init__(self) -> None:
        super().__init__()
        self.keep = torch.tensor([True, True, False])

    def forward(self, x: Tensor) -> Tensor:
        return x[self.keep]


def test_a_mask_of_the_model() -> None:
    model = OfModel()
    torch.testing.assert_close(spyre_mlir.compile(model, (X,), numerics="exact")(X), X[:2])


class Tables:
    def __init__(self) -> None:
        self.tables: dict[int, Tensor] = {}


class Rotary(nn.Module):
    """Makes a table of as many positions as the largest one asks for, once; its weights decide nothing."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.layer = nn.Linear(4, 4)
        self.longest = 2
        self.kept = Tables()

    def forward(self, x: Tensor) -> Tensor:
        places = torch.arange(x.shape[0]).repeat(1, 1)
        count = max(torch.max(places[:, 0]) + x.shape[0], self.longest)  # type: ignore[call-overload]
        if count > len(self.kept.tables):
            self.kept.tables[0] = torch.arange(count)[:, None] * 0.5
        return self.layer(x) * self.kept.tables[0][places[0]]


def test_a_table_made_in_a_model_without_weights() -> None:
    with torch.device("meta"):
        bare = Rotary().eval()
    made: Any = spyre_mlir.compile(bare, (X,), numerics="exact", host_fallback="error")
    assert bare.kept.tables == {}
    other = Rotary()
    torch.testing.assert_close(made.bind(other.state_dict())(X), other(X))


def changed(x: Tensor) -> Tensor:
    keep = torch.tensor([True, False, True])
    keep[1] = True
    return x[keep]


def changed_through_a_view(x: Tensor) -> Tensor:
    keep = torch.tensor([True, False, True])
    part = keep[1:]
    part.logical_not_()
    return x[keep]


class OfBuffer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keep", torch.tensor([True, True, False]))

    def forward(self, x: Tensor) -> Tensor:
        return x[self.keep]


@pytest.mark.parametrize(
    "model",
    [
        FunctionModel(lambda x: x[x > 0]),
        FunctionModel(lambda x: x[(x > 0) & torch.tensor([True, False, True, True])]),
        FunctionModel(changed),
        FunctionModel(changed_through_a_view),
        OfBuffer(),
    ],
)
def test_what_may_change_is_left_to_the_data(model: nn.Module) -> None:
    with pytest.raises(UnsupportedError, match=r"aten.index.Tensor: data decides the size of its result"):
        spyre_mlir.compile(model, (X,), host_fallback="error")


def test_nothing_of_torch_is_left_changed() -> None:
    before = torch.overrides._get_current_function_mode_stack()
    spyre_mlir.compile(FunctionModel(rows), (X,))
    assert torch.overrides._get_current_function_mode_stack() == before


class UsingData(nn.Linear):
    """As models written before `detach` do: what is read and written is the memory of the tensor."""

    def forward(self, input: Tensor) -> Tensor:
        y = input @ self.weight.data
        y.data[0] = 3.0
        input.data.add_(1)
        return y * 2 + self.bias.data


def test_data_of_a_tensor_has_its_memory() -> None:
    model, x, own = UsingData(3, 3), torch.ones(2, 3), torch.ones(2, 3)
    compiled = spyre_mlir.compile(model, (x.clone(),), numerics="exact")
    with torch.no_grad():
        torch.testing.assert_close(compiled(x), model(own))
    assert x.equal(own)
    assert x.tolist() == [[2.0] * 3] * 2


def test_a_deep_copy_has_memory_of_its_own() -> None:
    def copied(x: Tensor) -> tuple[Tensor, Tensor]:
        cache = {"keys": x + 1, "given": x}
        kept = copy.deepcopy(cache)
        cache["keys"].mul_(2)
        kept["given"].add_(5)
        return cache["keys"] - kept["keys"], kept["given"]

    given = X.clone()
    got = spyre_mlir.compile(FunctionModel(copied), (given,), numerics="exact")(given)
    torch.testing.assert_close(got, copied(X.clone()))
    assert torch.equal(given, X)


def test_other_memory_for_a_tensor_is_refused() -> None:
    def program(x: Tensor) -> Tensor:
        y = x * 1
        y.data = x * 3
        return y

    with pytest.raises(UnsupportedError, match="it assigns to its `data`\n  try: write to the tensor"):
        spyre_mlir.compile(FunctionModel(program), (torch.ones(2),))


def test_arrays_of_known_tensors_are_known() -> None:
    def program(x: Tensor) -> Tensor:
        array = torch.arange(3).numpy()
        array[0] = 7
        return x * torch.from_numpy(array) + torch.tensor(np.asarray(torch.full((3,), 2.0)))

    x = torch.ones(3)
    assert spyre_mlir.compile(FunctionModel(program), (x,), numerics="exact")(x).tolist() == [9.0, 3.0, 4.0]


@pytest.mark.parametrize("program", [lambda x: torch.from_numpy(x.numpy() * 2), lambda x: torch.tensor(np.asarray(x))])
def test_arrays_of_what_calls_decide_are_refused(program: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(UnsupportedError, match=r"NumPy a tensor that calls decide.*\n  at: .*\n  try: use func"):
        spyre_mlir.compile(FunctionModel(program), (torch.ones(2),))
