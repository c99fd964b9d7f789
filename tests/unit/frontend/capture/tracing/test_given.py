"""Models, examples and symbols of which torch would say less, or nothing."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.export import Dim

import spyre_mlir
from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.frontend.capture.tracing.given import check_model, check_shapes

X, Y = torch.ones(4, 3), torch.ones(8)
AUTO: Any = Dim.AUTO


class Two(nn.Module):
    def forward(self, x: Tensor, y: Any = None) -> Tensor:
        return x * 2


class Several(nn.Module):
    def forward(self, x: Tensor, *rest: Tensor) -> Tensor:
        return x + len(rest)


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        ({"input": {0: AUTO}}, r"dynamic_shapes names 'input', expected each argument of the call: 'x', 'y'"),
        ({"x": {0: AUTO}}, r"dynamic_shapes names 'x', expected each argument"),
        (({0: AUTO},), r"dynamic_shapes is for 1 arguments, expected 2: 'x', 'y'"),
        (({2: AUTO}, None), r"names dimension 2 of 'x', expected one of its 2, which are counted from 0"),
        ({"x": None, "y": {-1: AUTO}}, r"names dimension -1 of 'y', expected one of its 1"),
        (5, r"dynamic_shapes is 5, expected a dict or a tuple"),
    ],
)
def test_symbols_of_what_is_not_there(shapes: Any, said: str) -> None:
    with pytest.raises(InputError, match=said) as no:
        spyre_mlir.compile(Two(), (X, Y), dynamic_shapes=shapes)
    assert no.value.hint is not None
    assert "export.py" not in str(no.value)


def test_symbols_of_tensors_in_nestings() -> None:
    check_shapes(Two(), (X, {"a": [Y]}), {}, (None, {"a": [{0: AUTO}]}))
    with pytest.raises(InputError, match=r"dimension 1 of 'y\['a'\]\[0\]'"):
        check_shapes(Two(), (X, {"a": [Y]}), {}, (None, {"a": [{1: AUTO}]}))


@pytest.mark.parametrize(
    ("model", "args", "kwargs", "shapes"),
    [
        (Two(), (X,), {"y": Y}, {"x": {0: AUTO}, "y": None}),
        (Two(), (X,), {}, [{0: AUTO}]),
        (Two(), (X, Y), {}, {}),
        (Two(), (X, Y), {}, None),
        (Several(), (X, Y, Y), {}, ({0: AUTO}, (None, {0: AUTO}))),
    ],
)
def test_what_torch_takes(model: nn.Module, args: Any, kwargs: Any, shapes: Any) -> None:
    check_shapes(model, args, kwargs, shapes)
    torch.export.export(model, args, kwargs, dynamic_shapes=shapes)


@pytest.fixture
def group(tmp_path: Path) -> Generator[None]:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("group")
def test_weights_of_which_a_rank_has_a_part_are_refused() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    check_model(model)
    fully_shard(model, mesh=init_device_mesh("cpu", (1,)))
    with pytest.raises(UnsupportedError, match=r"the weight 0\.weight of \w+ is a DTensor, .* expected whole") as no:
        spyre_mlir.compile(model, (X,))
    assert "before fully_shard" in str(no.value.hint)
