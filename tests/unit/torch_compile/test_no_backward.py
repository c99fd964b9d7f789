"""Forward passes that autograd would record: they run, and their backward passes say why they do not."""

from __future__ import annotations

import pytest
import torch

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.torch_compile.no_backward import needs_backward, run_without_backward

PLAIN, TRAINED = torch.ones(2), torch.ones(2, requires_grad=True)


def test_autograd_records_inputs_that_need_gradients() -> None:
    assert needs_backward([PLAIN, 3, TRAINED])
    assert not needs_backward([PLAIN, 3])
    assert not needs_backward([])
    with torch.no_grad():
        assert not needs_backward([TRAINED])


def test_the_forward_pass_runs_without_gradients() -> None:
    modes: list[bool] = []

    def run(x: torch.Tensor, factor: int, y: torch.Tensor) -> list[torch.Tensor]:
        modes.append(torch.is_grad_enabled())
        return [x * factor, y + 1]

    first, second = run_without_backward(run, [TRAINED, 3, PLAIN])
    assert (first.tolist(), second.tolist(), modes) == ([3, 3], [2, 2], [False])
    assert first.requires_grad


@pytest.mark.parametrize(("training", "way"), [(False, '"training": True'), (True, "on the host, x.cpu()")])
def test_the_backward_pass_is_refused(training: bool, way: str) -> None:
    (result,) = run_without_backward(lambda x: [x * 2], [TRAINED], training=training)
    with pytest.raises(UnsupportedError) as refused:
        result.sum().backward()
    assert refused.value.message == "the backward pass of a graph that was compiled for Spyre"
    assert way in str(refused.value.hint)


def test_state_takes_no_gradient_and_may_be_written_again() -> None:
    class Counting(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)
            self.register_buffer("count", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count += 1
            return self.linear(x) * self.count

    torch.compiler.reset()
    model = Counting()
    compiled = torch.compile(model, backend="spyre", options={"numerics": "exact"})
    for calls in (1, 2, 3):
        result = compiled(torch.ones(3))
        assert (model.count.item(), model.count.requires_grad, result.requires_grad) == (calls, False, True)
        torch.testing.assert_close(result, model.linear(torch.ones(3)) * calls)
