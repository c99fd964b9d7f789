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
