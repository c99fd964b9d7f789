"""Covariances and correlations as torch has them, weights included."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch

import spyre_mlir
from spyre_mlir.errors import ImportProgramError, UnsupportedError
from spyre_mlir.frontend import import_program
from spyre_mlir.transforms.loop_to_kernel.precision_loss import RoundedWarning
from tests.functions import FunctionModel

RANDOM = torch.Generator().manual_seed(4)
X = torch.randn(4, 30, generator=RANDOM)
OFTEN, MUCH = torch.randint(1, 5, (30,), generator=RANDOM), torch.rand(30, generator=RANDOM) + 0.1
CALLS: dict[str, Callable[..., Any]] = {
    "plain": torch.cov,
    "of_one_variable": lambda x: torch.cov(x[0]),
    "of_a_row": lambda x: torch.cov(x[:1]),
    "uncorrected": lambda x: torch.cov(x, correction=0),
    "how_often": lambda x: torch.cov(x, fweights=OFTEN),
    "how_much": lambda x: torch.cov(x, aweights=MUCH.to(x.dtype)),
    "both": lambda x: torch.cov(x, correction=2, fweights=OFTEN, aweights=MUCH.to(x.dtype)),
    "uncorrected_weights": lambda x: torch.cov(x, correction=0, aweights=MUCH.to(x.dtype)),
    "of_integers": lambda x: torch.cov((x * 8).to(torch.int32)),
    "correlations": torch.corrcoef,
    "correlation_of_one": lambda x: torch.corrcoef(x[0]),
}


@pytest.mark.parametrize("name", CALLS)
def test_covariances_are_those_of_torch(name: str) -> None:
    rounds = pytest.warns(RoundedWarning, match="1 x batchmatmul") if name == "of_integers" else nullcontext()
    with rounds:  # the products of integers without bounds
        compiled = spyre_mlir.compile(FunctionModel(CALLS[name]), (X,), numerics="exact", host_fallback="error")
    for x in (X, X * 3 + 1):
        torch.testing.assert_close(compiled(x), CALLS[name](x))


@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
def test_weights_that_a_call_brings_are_looked_at_by_the_host() -> None:
    model = FunctionModel(lambda x, w: torch.cov(x, aweights=w))
    compiled = spyre_mlir.compile(model, (X, MUCH), numerics="exact")
    assert [step.op for step in compiled.host_steps] == ["host::none_below_zero"]
    torch.testing.assert_close(compiled(X, MUCH), model(X, MUCH))


def test_arguments_that_torch_refuses() -> None:
    with pytest.raises(ImportProgramError, match=r"fewer dimensions|at most two"):
        import_program(FunctionModel(torch.cov), (X[None],))
    for wrong in ({"aweights": -MUCH}, {"aweights": MUCH[:1]}, {"aweights": OFTEN}, {"fweights": MUCH}):
        with pytest.raises((ImportProgramError, UnsupportedError)):
            import_program(FunctionModel(lambda x, wrong=wrong: torch.cov(x, **wrong)), (X,))
