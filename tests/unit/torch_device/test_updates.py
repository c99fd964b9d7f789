"""Updates of optimizers on the device, against the same on the CPU: squares of gradients have no 16-bit form."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import spyre_mlir.device  # noqa: F401 - switches the device on
from spyre_mlir.torch_device.updates import in_an_update

GRADIENT = torch.tensor([1e-3, 5e-4, -2.5e-4, 2e-5])


def updated(device: str, kind: Any, options: dict[str, Any]) -> torch.Tensor:
    parameter = torch.nn.Parameter(torch.ones(4).to(device))
    optimizer = kind([parameter], lr=0.01, **options)
    for _ in range(2):
        parameter.grad = GRADIENT.to(device)
        optimizer.step()
    return parameter.detach().cpu()


@pytest.mark.parametrize(
    ("kind", "options"), [(torch.optim.Adam, {"amsgrad": True}), (torch.optim.RMSprop, {}), (torch.optim.Adagrad, {})]
)
def test_small_gradients_move_parameters_as_on_the_cpu(kind: Any, options: dict[str, Any]) -> None:
    torch.testing.assert_close(updated("spyre", kind, options), updated("cpu", kind, options), rtol=1e-5, atol=1e-6)


def test_the_closure_and_what_comes_after_a_step_are_no_update() -> None:
    seen = list[bool]()

    class Observed(torch.optim.Optimizer):
        @torch.no_grad()
        def step(self, closure: Any = None) -> Any:
            with torch.enable_grad():
                closure()
            seen.append(in_an_update())

    optimizer = Observed([torch.nn.Parameter(torch.ones(1))], {})
    optimizer.step(lambda: seen.append(in_an_update()))
    with torch.no_grad():
        seen.append(in_an_update())
    assert seen == [False, True, False]
