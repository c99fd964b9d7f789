"""Models without example inputs."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.errors import InputError, MachineFault


def test_a_lazy_model_has_what_its_program_has() -> None:
    lazy = spyre_mlir.compile(nn.Linear(4, 3))
    assert isinstance(lazy, spyre_mlir.LazyModel)
    assert repr(lazy) == "<LazyModel Linear: 0 programs>"
    assert {"report", "save", "trace", "mlir", "verify"} <= set(dir(lazy))
    with pytest.raises(InputError, match="report is of one program, and the model has 0\n  try: call the model first"):
        lazy.report()
    lazy(torch.ones(2, 4))
    assert "tensor<2x4xf32>" in lazy.mlir("aten")
    assert list(lazy.log.lines()) == []
    assert not hasattr(lazy, "eval")
    lazy(torch.ones(3, 4))
    with pytest.raises(InputError, match="the model has 2\n  try: take one of `programs`"):
        lazy.report()


def test_a_model_that_is_compiled_at_its_first_call_shows_progress_then() -> None:
    steps: list[str] = []
    model = spyre_mlir.compile(nn.ReLU(), progress=steps.append)
    assert steps == []
    model(torch.ones(2, 3))
    assert steps[0] == "import"


@pytest.mark.filterwarnings("ignore:a step of this program")
def test_a_signature_keeps_what_python_read_at_its_first_call() -> None:
    class Signed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1 if x.sum() > 0 else x - 1

    lazy = spyre_mlir.compile(Signed(), specialize_values=True)
    two, four = torch.ones(2, 4), torch.ones(4, 4)
    assert torch.equal(lazy(two), two + 1)
    with pytest.raises(MachineFault, match="Python reads bool of a tensor at"):
        lazy(-two)
    assert torch.equal(lazy(-four), -four - 1)
    assert repr(lazy) == "<LazyModel Signed: 2 programs>"


def test_a_bound_for_sizes_that_data_decides_needs_example_inputs() -> None:
    with pytest.raises(
        InputError, match="max_size needs example inputs\n  try: compile\\(model, \\(x,\\), max_size=…\\)"
    ):
        spyre_mlir.compile(nn.ReLU(), max_size=3)
