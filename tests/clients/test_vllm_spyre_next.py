"""The layer of vllm-spyre-next for torch-spyre runs on our device as it is; vllm itself is a stand-in.

The layer pads batches of 2 to 63 rows in front and reads rows from the front, so their results are rows of padding on
any device; they are here as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from importlib import import_module
from typing import Any, cast

import pytest
import torch

import spyre_mlir.device  # noqa: F401 - switches the device on
from spyre_mlir.torch_compile import compilations, forget
from tests.clients.installed import needs
from tests.clients.vllm_stand_in import vllm_modules

HIDDEN = 128
FLOAT16 = 2.0**-10  # a unit in the last place, relative
BFLOAT16 = 2.0**-7
DLFLOAT16 = 2.0**-9
# Relative to the largest result: the function rounds some seven times, to float16 or to the card's format.
BOUNDS = {"exact": 4 * FLOAT16, "device": 4 * DLFLOAT16}


@pytest.fixture(scope="module")
def package() -> Generator[Any]:
    """`vllm_spyre_next.custom_ops.rms_norm`, with its operator registered."""
    needs("vllm-spyre-next", "0.1", "--no-deps vllm-spyre-next==0.1.0")
    with pytest.MonkeyPatch.context() as patch, torch.library._scoped_library("vllm", "FRAGMENT") as library:
        for name, module in vllm_modules(library).items():
            patch.setitem(sys.modules, name, module)
        before = set(sys.modules)
        rms_norm = import_module("vllm_spyre_next.custom_ops.rms_norm")
        rms_norm.register()
        yield rms_norm
        for name in set(sys.modules) - before:
            if name.startswith("vllm_spyre_next"):
                del sys.modules[name]


@pytest.fixture(params=BOUNDS)
def numerics(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(cast(Any, torch).spyre, "numerics", request.param)
    torch.manual_seed(0)
    torch.compiler.reset()  # the function is one for all layers, and Dynamo keeps its programs
    forget()
    return request.param


def normalised(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """RMS normalisation in double precision, by its definition."""
    wide = x.double()
    return wide / (wide.square().mean(-1, keepdim=True) + eps).sqrt() * weight.double()


def distance(got: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((got.double() - wanted.double()).abs().max() / wanted.double().abs().max())


@torch.no_grad()
@pytest.mark.parametrize("residual", [False, True], ids=["plain", "residual"])
@pytest.mark.parametrize("batch", [1, 64, 100])
def test_the_function_for_the_card_is_that_of_the_cpu(package: Any, batch: int, residual: bool, numerics: str) -> None:
    function = package.SpyreRMSNorm._forward_static_spyre
    x, weight = torch.randn(batch, HIDDEN).half(), (1 + torch.randn(HIDDEN) / 10).half()
    eps, added = torch.full((batch,), 1e-6).half(), torch.randn(HIDDEN, batch).half() if residual else None
    wanted = function(x, eps, HIDDEN, torch.float16, weight, added)
    moved = [t if t is None else t.to("spyre") for t in (x, eps, weight, added)]
    there = torch.compile(function, dynamic=False)(moved[0], moved[1], HIDDEN, torch.float16, moved[2], moved[3])
    pairs = zip(there, wanted, strict=True) if residual else [(there, wanted)]
    for got, expected in pairs:
        assert got.device.type == "spyre" and got.dtype == torch.float16
        assert distance(got.cpu(), expected) <= BOUNDS[numerics]
    assert [made.function for made in compilations()] == ["_forward_static_spyre"]
    assert compilations()[0].kernels > 0


@torch.no_grad()
@pytest.mark.parametrize("batch", [1, 64, 100])
def test_the_layer_normalises(package: Any, batch: int, numerics: str) -> None:
    layer = package.SpyreRMSNorm(HIDDEN)
    layer.weight.normal_(1, 0.1)
    x = torch.randn(batch, HIDDEN, dtype=torch.bfloat16)
    got = layer(x)
    assert got.dtype == torch.bfloat16
    assert distance(got, normalised(x, layer.weight)) <= BOUNDS[numerics] + BFLOAT16
    assert compilations()[0].kernels > 0


@torch.no_grad()
def test_batches_that_the_layer_pads_come_back_as_its_padding(package: Any, numerics: str) -> None:
    layer = package.SpyreRMSNorm(HIDDEN)
    assert layer(torch.randn(5, HIDDEN, dtype=torch.bfloat16)).equal(torch.zeros(5, HIDDEN, dtype=torch.bfloat16))
