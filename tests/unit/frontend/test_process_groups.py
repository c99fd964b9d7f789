"""Collectives in a process with no group, with one of its own, and with another than the program was compiled for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol

import spyre_mlir
from spyre_mlir.errors import CollectiveError, InputError
from spyre_mlir.frontend.process_groups import Collective, ranks_of

ALL_REDUCE = torch.ops._c10d_functional.all_reduce.default
WHERE = "model.py:7"


@pytest.fixture
def alone() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def test_without_a_process_group() -> None:
    with pytest.raises(InputError, match="needs a process group, and this process has none") as refused:
        ranks_of("0", WHERE)
    assert refused.value.where == WHERE
    assert "torchrun" in str(refused.value.hint)
    assert "init_process_group" in str(refused.value.hint)


@pytest.mark.usefixtures("alone")
def test_a_name_that_no_group_has() -> None:
    with pytest.raises(InputError, match=r"rank 0 has no process group called 'tensor'; it has '0'"):
        ranks_of("tensor", WHERE)


@pytest.mark.usefixtures("alone")
def test_a_group_of_another_size() -> None:
    with pytest.raises(InputError, match=r"has 1 rank: 0, and the program was compiled for 2 ranks: 0, 1") as refused:
        Collective(ALL_REDUCE, (0, 1), WHERE)(input=torch.ones(3), reduce_op="sum", group_name="0")
    assert "torchrun --nproc-per-node 2" in str(refused.value.hint)


@pytest.mark.usefixtures("alone")
def test_a_size_in_the_call_that_is_not_the_groups() -> None:
    gather: Any = torch.ops._c10d_functional.all_gather_into_tensor.default
    with pytest.raises(InputError, match=r"has 1 rank: 0, and the program was compiled for 3 ranks"):
        Collective(gather, (), WHERE)(input=torch.ones(3), group_size=3, group_name="0")


@pytest.mark.usefixtures("alone")
def test_a_collective_is_complete_when_it_returns() -> None:
    x = torch.arange(3.0)
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
        with mode():
            result = Collective(ALL_REDUCE, (0,), WHERE)(input=x + 0, reduce_op="sum", group_name="0")
        assert torch.equal(result, x)
    assert ranks_of("0", WHERE) == (0,)


@pytest.mark.usefixtures("alone")
def test_what_the_group_refuses_names_rank_operator_and_place() -> None:
    with pytest.raises(CollectiveError, match=r"rank 0: all_reduce of group '0' \(1 rank: 0\) was not completed"):
        Collective(ALL_REDUCE, (), WHERE)(input=torch.ones(3), reduce_op="median", group_name="0")


class Summing(torch.nn.Module):
    """Keeps its group, as layers of ibm-fms do; a process group can be neither copied nor pickled."""

    def __init__(self) -> None:
        super().__init__()
        self.group, self.own = dist.group.WORLD, torch.nn.Linear(8, 8, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(self.own(x), "sum", self.group)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_models_that_keep_their_group_are_compared_with_torch(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model, x = Summing().eval().to(dtype), torch.linspace(-1, 1, 16).reshape(2, 8).to(dtype)
    compiled: Any = spyre_mlir.compile(model, (x,))
    assert compiled.verify(x)
    assert 0 < compiled.accuracy(x).worst < 0.01
    other = torch.nn.Linear(8, 8, bias=False).to(dtype)
    assert compiled.bind({"own.weight": other.weight}).verify(x)
