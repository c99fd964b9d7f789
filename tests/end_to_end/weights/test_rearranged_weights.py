"""Weights that the host rearranges when it lays them out: at every level, from files, and beside other programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch import nn

import spyre_mlir
from spyre_mlir.backend.check import check_path
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import ComputeOp, RestickifyOp, ToDeviceOp
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.errors import InputError
from spyre_mlir.hw.formats import DL16
from spyre_mlir.hw.number_formats.dl16 import round_trip
from spyre_mlir.hw.number_formats.encoding import decode
from spyre_mlir.runtime.residence import CARD
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context


def model(dtype: torch.dtype = torch.float32) -> nn.Conv2d:
    torch.manual_seed(0)
    return nn.Conv2d(5, 70, 3, padding=1).to(dtype).eval()


X = torch.linspace(-2.0, 2.0, 5 * 7 * 6).reshape(1, 5, 7, 6)


def compiled(module: nn.Module, *inputs: torch.Tensor, **options: Any) -> CompiledModel:
    made = spyre_mlir.compile(module, inputs, **options)
    assert isinstance(made, CompiledModel)
    return made


def rearranged(program: CompiledModel) -> list[ToDeviceOp]:
    module = parse_module(program.mlir("spyre.kernel"), make_context())
    return [op for op in module.walk() if isinstance(op, ToDeviceOp) and op.moves]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_every_level_agrees_with_torch(dtype: torch.dtype) -> None:
    program = compiled(model(dtype), X.to(dtype))
    assert len(rearranged(program)) == 1
    assert program.verify(X.to(dtype))


def test_no_kernel_reads_the_weight_but_the_product() -> None:
    program = compiled(model(), X)
    (sent,) = rearranged(program)
    readers = [use.operation for use in sent.result.uses]
    assert [op.function_name for op in readers if isinstance(op, ComputeOp)] == ["batchmatmul"]
    assert not any(isinstance(op, RestickifyOp) for op in readers)


@pytest.mark.parametrize("numerics", ["exact", "device"])
def test_layers_of_one_region_have_weights_of_their_own(numerics: str) -> None:
    torch.manual_seed(1)
    layers = [nn.Sequential(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 1)) for _ in range(3)]
    stack = nn.Sequential(*layers).eval()
    x = torch.randn(1, 64, 5, 6)
    program = compiled(stack, x, numerics=numerics)
    assert {len(op.moves) for op in rearranged(program)} != set()
    torch.testing.assert_close(program(x), stack(x), rtol=0.02, atol=0.02)


def test_the_file_has_the_weight_as_the_product_reads_it(tmp_path: Path) -> None:
    """Row 15 x + 5 y + c of the summed dimension is tap (y, x) of channel c, output n in lane n."""
    module = model()
    compiled(module, X).save(tmp_path / "bundle")
    entry = json.loads((tmp_path / "bundle" / "manifest.json").read_text())["weights"]["weight"]
    assert entry["moved"][0].startswith("#spyre.move<")
    codes = load_file(tmp_path / "bundle" / "weights.safetensors")["weight"]
    assert entry["layout"].startswith("[1, 1, 45, 70] x SEN169_FP16, order [1, 2, 3, 0], stick 3")
    found = decode(codes, DL16.name).reshape(64, 128)
    wanted = round_trip(module.weight.detach().double().permute(3, 2, 1, 0).reshape(45, 70).numpy())
    assert np.array_equal(found[:45, :70], wanted)
    assert not found[45:].any()
    assert not found[:, 70:].any()


@pytest.mark.parametrize("numerics", ["exact", "device"])
def test_a_saved_program_runs_as_before(numerics: str, tmp_path: Path) -> None:
    program = compiled(model(), X, numerics=numerics)
    program.save(tmp_path / "bundle")
    assert torch.equal(spyre_mlir.load(tmp_path / "bundle", numerics=numerics)(X), program(X))


def test_weights_bound_later_are_rearranged_too(tmp_path: Path) -> None:
    with torch.device("meta"):
        empty = nn.Conv2d(5, 70, 3, padding=1).eval()
    bound = compiled(empty, X).bind(model().state_dict())
    assert bound.verify(X)
    bound.save(tmp_path / "bundle")
    assert torch.equal(spyre_mlir.load(tmp_path / "bundle")(X), bound(X))


def test_a_weight_that_two_programs_read_in_two_ways() -> None:
    """The card has a copy of each form, neither of which is taken for the other."""

    class Other(nn.Module):
        def __init__(self, weight: nn.Parameter) -> None:
            super().__init__()
            self.weight = weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.weight.permute(3, 2, 1, 0).reshape(45, 70)

    first = model()
    second, x = Other(first.weight).eval(), torch.ones(45, 70)
    programs = compiled(first, X, numerics="exact"), compiled(second, x, numerics="exact")
    for _ in range(2):
        torch.testing.assert_close(programs[0](X), first(X), rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(programs[1](x), second(x), rtol=1e-4, atol=1e-4)
    assert CARD.of(first.weight).transfers <= 2


def test_a_weight_that_is_written_is_rearranged_again() -> None:
    module = model()
    program = compiled(module, X, numerics="exact")
    program(X)
    with torch.no_grad():
        module.weight.mul_(-1.0)
    torch.testing.assert_close(program(X), module(X), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("count", [64, 50])
def test_rows_are_gathered_in_parts(tmp_path: Path, count: int) -> None:
    """64 indices are two sticks, 50 none that cores share."""
    table = nn.Embedding(300, 1024, _weight=torch.arange(300 * 1024).remainder(1021).reshape(300, 1024).half())
    indices = torch.randint(0, 300, (1, count))
    program = compiled(table, indices)
    assert [len(op.moves) for op in rearranged(program)] == [1]
    module = parse_module(program.mlir("spyre.kernel"), make_context())
    (gather,) = [op for op in module.walk() if isinstance(op, GatherOp)]
    assert gather.space_splits()["part"] > 1
    assert program.verify(indices)
    assert torch.equal(program(indices), table(indices))
    program.save(tmp_path / "saved")
    assert [f for f in check_path(tmp_path / "saved", make_context()) if f.severity == "error"] == []
    loaded: Any = spyre_mlir.load(tmp_path / "saved")
    others = torch.randint(0, 300, (1, count))
    assert torch.equal(loaded(others), table(others))
    with pytest.raises(InputError, match="takes 0 to 299"):
        loaded(others + 300)


def test_parts_of_rows_from_the_end() -> None:
    """Negative indices are counted from the end of the whole rows."""

    class Rows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", torch.arange(300 * 1024).remainder(1021).reshape(300, 1024).half())

        def forward(self, index: torch.Tensor) -> torch.Tensor:
            table: Any = self.table
            return table[index]

    index = torch.arange(-64, 0).reshape(1, 64)
    program = compiled(Rows(), index)
    assert [len(op.moves) for op in rearranged(program)] == [1]
    assert torch.equal(program(index), Rows()(index))
