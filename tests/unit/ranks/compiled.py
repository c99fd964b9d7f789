"""Programs of two ranks, compiled in one process by a group that exchanges nothing."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.testing._internal.distributed.fake_pg import FakeStore

import spyre_mlir
from spyre_mlir.compiled import CompiledModel

X = torch.linspace(-1, 1, 128).reshape(2, 64)


@contextmanager
def as_rank(rank: int, count: int = 2) -> Generator[None]:
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=count)
    try:
        yield
    finally:
        dist.destroy_process_group()


def compiled(make: Callable[[int], nn.Module], rank: int, *inputs: Any) -> CompiledModel:
    with as_rank(rank), torch.no_grad():
        made = spyre_mlir.compile(make(rank), inputs, host_fallback="error")
    assert isinstance(made, CompiledModel)
    return made


def together(name: str, x: torch.Tensor, *arguments: Any) -> torch.Tensor:
    collective: Any = getattr(torch.ops._c10d_functional, name)
    return torch.ops._c10d_functional.wait_tensor(collective(x, *arguments, "0"))
