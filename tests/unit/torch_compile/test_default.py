"""`torch.compile` without a back end: graphs on the device come to us, all others stay Inductor's."""

from __future__ import annotations

import copy
import os
import subprocess
from collections.abc import Generator
from typing import Any, cast
from unittest import mock

import pytest
import torch
from torch import nn

import spyre_mlir.device  # noqa: F401 - switches the device on
from spyre_mlir import torch_compile

SPYRE = cast(Any, torch).spyre


class Softmax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x * 2 + 1, -1)


@pytest.fixture(autouse=True)
def fresh() -> Generator[None]:
    torch._dynamo.reset()
    torch_compile.forget()
    torch.manual_seed(0)
    with torch.no_grad():
        yield
    SPYRE.numerics = "device"


@pytest.fixture
def inductor() -> Generator[mock.Mock]:
    """Inductor, whose graphs run as they are here: what matters is who is asked."""
    with mock.patch("torch._inductor.compile_fx.compile_fx", lambda *a, **_: called(*a)):
        called = mock.Mock(side_effect=lambda graph, _: graph.forward)
        yield called


@pytest.mark.parametrize("options", [{}, {"dynamic": False}, {"fullgraph": True}, {"mode": "default"}])
def test_a_module_on_the_device_is_compiled_by_us(options: dict[str, Any], inductor: mock.Mock) -> None:
    x, model = torch.randn(4, 64), Softmax()
    there, moved = x.to("spyre"), copy.deepcopy(model).to("spyre")
    got = torch.compile(moved, **options)(there)
    assert got.device.type == "spyre"
    assert [c.function for c in torch_compile.compilations()] == ["forward"]
    assert not inductor.called
    named = torch.compile(moved, backend="spyre")(there)
    assert torch.equal(got.cpu(), named.cpu())
    assert not torch.equal(got.cpu(), model(x)), "float32 on the host does not round"
    SPYRE.numerics = "exact"
    torch.testing.assert_close(torch.compile(moved, **options)(there).cpu(), model(x), rtol=1e-5, atol=1e-6)


def test_numerics_are_those_of_the_call(inductor: mock.Mock) -> None:
    fast, x = torch.compile(lambda x: x * 1.5), torch.tensor([1.0 + 2**-12]).to("spyre")
    assert fast(x).item() == 1.5
    SPYRE.numerics = "exact"
    assert fast(x).item() == 1.5 + 1.5 * 2**-12


def test_what_comes_from_the_host_and_goes_back_is_compiled_by_us(inductor: mock.Mock) -> None:
    def function(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        return (x.view(-1).to("spyre") * scale * 2).cpu()

    x, scale = torch.ones(2, 3), torch.tensor(2.0)
    assert torch.equal(torch.compile(function)(x, scale), torch.full((6,), 4.0))
    assert torch_compile.compilations()[0].kernels
    assert not inductor.called


def test_graphs_of_the_host_are_inductors(inductor: mock.Mock) -> None:
    x = torch.ones(3)
    assert torch.equal(torch.compile(lambda x: x + 1, mode="reduce-overhead")(x), x + 1)
    assert inductor.called
    assert not torch_compile.compilations()


def test_a_graph_that_computes_on_two_devices_is_refused_with_its_line(inductor: mock.Mock) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, y + 1

    with pytest.raises(Exception, match=r"computes on spyre, and \w+ on cpu") as caught:
        torch.compile(function)(torch.ones(3).to("spyre"), torch.ones(3))
    assert "test_default.py" in str(caught.value)
    assert 'backend="spyre"' in str(caught.value)
    assert not inductor.called


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"mode": "reduce-overhead"}, "no mode reduce-overhead"),
        ({"mode": "max-autotune"}, "no mode max-autotune"),
        ({"options": {"max_autotune_gemm": True}}, "no option max_autotune_gemm"),
    ],
)
def test_modes_and_options_of_inductor_are_refused_by_name(asked: dict[str, Any], named: str) -> None:
    with pytest.raises(Exception, match=f"torch.compile has {named} for a graph on spyre"):
        torch.compile(lambda x: x + 1, **asked)(torch.ones(3).to("spyre"))


def test_a_script_that_knows_nothing_of_us(tmp_path: Any, python: list[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\n"
        "model = torch.nn.Linear(3, 2).to('spyre')\n"
        "with torch.no_grad():\n"
        "    y = torch.compile(model)(torch.ones(1, 3, device='spyre'))\n"
        "print(y.device)\n"
        "from spyre_mlir.torch_compile import compilations\n"
        "print(len(compilations()), compilations()[0].kernels > 0)\n"
    )
    done = subprocess.run(
        [*python, str(script)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"SPYRE_MLIR_DEVICE": "1"},
    )
    assert (done.stdout, done.stderr) == ("spyre:0\n1 True\n", "")
