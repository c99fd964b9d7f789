"""Collectives that write to their arguments: what they are traced as, and those without a form. Ranks run them too."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.importer import import_program
from spyre_mlir.frontend.process_groups import without_exchange
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore:.*deprecated:FutureWarning")
X = torch.ones(4, 6)


def parts(x: Tensor) -> list[Tensor]:
    return [torch.empty_like(x) for _ in range(2)]


def reduced(x: Tensor) -> Any:
    work: Any = dist.all_reduce(y := x * 2, async_op=True)
    return (y + 1, x) if work.wait() and work.is_completed() and work.is_success() else None


def reduced_to_one(x: Tensor) -> Any:
    dist.reduce(y := x * 2, dst=1, op=dist.ReduceOp.MAX)
    return y


def gathered(x: Tensor) -> Any:
    dist.all_gather(taken := parts(x), x)
    return taken


def gathered_at_the_first(x: Tensor) -> Any:
    dist.gather(x, parts(x), dst=0)
    return x + 1


def scattered(x: Tensor) -> Any:
    dist.scatter(y := torch.empty_like(x), None, src=0)
    return y


def exchanged(x: Tensor) -> Any:
    dist.all_to_all(taken := parts(x[:2]), list(x.chunk(2)))
    return taken


CALLS = {
    reduced: ["all_reduce"],
    reduced_to_one: ["all_reduce"],
    gathered: ["all_gather_into_tensor"],
    gathered_at_the_first: ["all_gather_into_tensor"],
    scattered: ["broadcast"],
    exchanged: ["all_to_all_single"],
    lambda x: dist.all_reduce_coalesced([y := x + 1, z := x * 2]) or (y, z): ["all_reduce", "all_reduce"],
}


@pytest.mark.parametrize("function", CALLS)
def test_a_call_is_collectives_of_the_op_table(function: Callable[[Tensor], Any]) -> None:
    with without_exchange(1, 2):
        text = str(import_program(FunctionModel(function), (X,)).module)
    assert re.findall(r"_c10d_functional::(\w+)", text) == CALLS[function]


def received(x: Tensor) -> Tensor:
    dist.recv(y := torch.empty_like(x), 0)
    return y


def of_several_sizes(x: Tensor) -> Any:
    dist.all_gather(taken := [torch.empty(3), torch.empty(5)], x)
    return taken


def of_nothing(x: Tensor) -> Tensor:
    dist.scatter(y := torch.empty_like(x), None, src=1)
    return y


def of_too_many(x: Tensor) -> Tensor:
    dist.scatter(y := torch.empty_like(x), [x, x, x], src=1)
    return y


REFUSED = {
    of_nothing: "torch.distributed.scatter: 0 tensors for 2 ranks",
    of_too_many: "torch.distributed.scatter: 3 tensors for 2 ranks",
    received: "torch.distributed.recv: it has no collective form",
    of_several_sizes: "torch.distributed.all_gather: ranks have tensors of several sizes",
}


@pytest.mark.parametrize("function", REFUSED)
def test_what_has_no_form_is_named_with_its_line(function: Callable[[Tensor], Any]) -> None:
    with without_exchange(1, 2), pytest.raises(UnsupportedError, match=re.escape(REFUSED[function])) as caught:
        import_program(FunctionModel(function), (X,))
    line = function.__code__.co_firstlineno + 1
    assert str(caught.value.where) == f"{__file__}:{line}"
    assert caught.value.hint
