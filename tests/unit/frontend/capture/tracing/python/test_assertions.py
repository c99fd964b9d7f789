"""`assert` and `raise` about a tensor in a model: what calls check, with which text, and which truths are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.errors import ImportProgramError, MachineFault, UnsupportedError
from tests.functions import FunctionModel
from tests.unit.frontend.capture.tracing.asserting import (
    branching,
    negated,
    of_a_constant,
    of_a_number,
    one_of_two,
    plain,
    raising,
    raising_after_a_write,
    raising_at_the_end,
    raising_for_one_of_two,
    raising_what_is_caught,
    two_at_once,
    with_text,
    with_text_of_values,
)

X = torch.linspace(0.5, 2.0, 24).reshape(4, 6)


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (plain, "assert (x > 0).all()"),
        (with_text, "numbers must be positive"),
        (with_text_of_values, "assert x.min() > 0, f"),
        (negated, "zeros and less"),
        (two_at_once, "assert (x < 100).all() and x.sum() > 0"),
        (of_a_number, "all are zeros"),
        (raising, "numbers must be positive"),
        (raising_for_one_of_two, "numbers of … must be positive"),
        (raising_at_the_end, "raise NotImplementedError"),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
@pytest.mark.filterwarnings("ignore")
def test_each_call_checks(program: Callable[[Tensor], Tensor], text: str) -> None:
    compiled = spyre_mlir.compile(FunctionModel(program), (X,), numerics="exact")
    torch.testing.assert_close(compiled(X), program(X))
    with pytest.raises((AssertionError, ValueError, NotImplementedError)):
        program(-X)
    with pytest.raises(MachineFault) as caught:
        compiled(-X)
    assert text in str(caught.value)


@pytest.mark.filterwarnings("ignore")
def test_distributions_check_their_arguments() -> None:
    def program(x: Tensor) -> Tensor:  # Dynamo ends these checks for the whole process, unless they are asked for
        known = torch.distributions.Normal(0.0, 1.0, validate_args=True)
        return torch.distributions.Normal(x, x, validate_args=True).log_prob(x + 1) + known.log_prob(x)

    compiled = spyre_mlir.compile(FunctionModel(program), (X,), numerics="exact")
    torch.testing.assert_close(compiled(X), program(X))
    with pytest.raises(MachineFault, match=r"Expected parameter scale \(.* to satisfy the constraint"):
        compiled(-X)
    assert {step.op for step in compiled.host_steps} == {"host::holds"}


@pytest.mark.parametrize(
    "program", [branching, one_of_two, raising_what_is_caught, raising_after_a_write], ids=lambda p: p.__name__
)
def test_a_truth_that_decides_more_than_an_error_is_refused(program: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(UnsupportedError, match="decides its control flow or a shape by the values of a tensor"):
        spyre_mlir.compile(FunctionModel(program), (X,))


def test_what_eager_refuses_inside_of_vmap_is_refused() -> None:
    def program(x: Tensor) -> Tensor:
        return torch.vmap(with_text)(x)

    with pytest.raises(RuntimeError, match="vmap"):
        program(X)
    with pytest.raises(ImportProgramError, match="vmap"):
        spyre_mlir.compile(FunctionModel(program), (X,))


def test_a_known_truth_needs_no_check() -> None:
    assert spyre_mlir.compile(FunctionModel(of_a_constant), (X,)).host_steps == ()
