"""Functions that look at numbers: eager's results at every level, and eager's refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as f

import spyre_mlir
from spyre_mlir.errors import SpyreError, UnsupportedError
from spyre_mlir.parted.model import PartedModel
from tests.end_to_end.importing.against_eager import Programs, close, model_of, results

pytestmark = pytest.mark.filterwarnings("ignore")


def drawn(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


A, B = drawn(5, 3), drawn(5, 2, seed=2)
SQUARE = drawn(2, 4, 4, seed=3)
LOSS = (drawn(6, 3, 5, seed=4), torch.randint(1, 5, (3, 4)), torch.tensor([6, 5, 6]), torch.tensor([3, 4, 2]))


def narrowed(x: Tensor, start: Tensor) -> Any:
    return x.narrow(0, start, 2) * 2, torch.narrow(x, 1, start, 1)


def losses(x: Tensor, targets: Tensor, lengths: Tensor, wanted: Tensor) -> Any:
    scores = x.log_softmax(-1)
    each = torch.ctc_loss(scores, targets, lengths, wanted, 0, 0)
    return (
        f.ctc_loss(scores, targets, lengths, wanted),
        each,
        f.ctc_loss(scores, targets, lengths, wanted, reduction="sum"),
    )


def losses_of_known_lengths(x: Tensor, targets: Tensor) -> Any:
    return f.ctc_loss(x.log_softmax(-1), targets, (6, 5, 6), [3, 4, 2]) * 2


def likelihoods(x: Tensor, y: Tensor, var: Tensor) -> Any:
    whole = f.gaussian_nll_loss(x, y, var, full=True, reduction="none")
    return (
        whole,
        f.gaussian_nll_loss(x, y, var[..., :1]),
        f.gaussian_nll_loss(x, y, var[..., 0], reduction="sum", eps=0.5),
    )


def solved(a: Tensor, b: Tensor) -> Any:
    made = torch.linalg.lstsq(a, b)
    wide = torch.linalg.lstsq(a.mT, b[:3], driver="gelsd")
    return made.solution @ b[:2], made.residuals, made.rank, made.singular_values, wide[0], wide[1]


def solved_by_rank(a: Tensor, b: Tensor) -> Any:
    solution, residuals, _, values = torch.linalg.lstsq(a, b, driver="gelss")
    return solution, residuals * 2, values


def eigenvalues(a: Tensor) -> Any:
    values, vectors = torch.linalg.eig(a)
    return values, vectors.abs(), torch.linalg.eigvals(a) * 2, values.real.sum(-1)


def weighted(x: Tensor, counts: Tensor, weights: Tensor) -> Any:
    return torch.cov(x, fweights=counts, aweights=weights), torch.cov(x, fweights=counts) + 1


def related(x: Tensor, counts: Tensor) -> Any:
    z = torch.complex(x, x.flip(1) * 2)
    return torch.cov(z), torch.cov(z, fweights=counts), torch.corrcoef(z), torch.corrcoef(z[0])


def slopes_of_losses(x: Tensor, targets: Tensor, lengths: Tensor, wanted: Tensor) -> Any:
    def loss(given: Tensor, reduction: str) -> Tensor:
        each = f.ctc_loss(given.log_softmax(-1), targets, lengths, wanted, 0, reduction, zero_infinity=True)
        return (each * torch.arange(1, 4)).sum() if reduction == "none" else each

    return tuple(torch.func.grad(lambda a: loss(a, reduction))(x) for reduction in ("none", "mean", "sum"))  # noqa: B023


def slope_of_one_loss(x: Tensor, targets: Tensor) -> Tensor:
    with torch.enable_grad():
        given = x[:, 0].detach().requires_grad_()
        loss = f.ctc_loss(given.log_softmax(-1), targets[0, :3], torch.tensor(6), torch.tensor(3))
        return torch.autograd.grad(loss, given)[0]


def slopes_of_likelihoods(x: Tensor, y: Tensor, var: Tensor) -> Any:
    return torch.func.grad(f.gaussian_nll_loss, argnums=(0, 2))(x, y, var)


PROGRAMS: Programs = {
    "slopes of losses": (
        slopes_of_losses,
        (*LOSS[:2], torch.tensor([6, 2, 6]), torch.tensor([3, 4, 0])),
    ),  # the second is infinite
    "slope of one loss": (slope_of_one_loss, LOSS[:2]),
    "slopes of likelihoods": (slopes_of_likelihoods, (A, A.flip(0), A.abs())),
    "narrowed": (narrowed, (A, torch.tensor(1))),
    "narrowed from the end": (narrowed, (A, torch.tensor(-2))),
    "losses": (losses, LOSS),
    "losses of known lengths": (losses_of_known_lengths, LOSS[:2]),
    "likelihoods": (likelihoods, (A, A.flip(0), A.abs())),
    "solved": (solved, (A, B)),
    "solved by rank": (solved_by_rank, (A, B)),
    "eigenvalues": (eigenvalues, (SQUARE,)),
    "related complex numbers": (related, (A, torch.tensor([1, 2, 1]))),
    "weighted": (weighted, (A, torch.tensor([1, 2, 0]), torch.tensor([0.5, 1.0, 2.0]))),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_level_is_eager(name: str) -> None:
    model, inputs = model_of(PROGRAMS, name)
    compiled = spyre_mlir.compile(model, inputs, numerics="exact")
    close(results(compiled, inputs), results(model, inputs))
    verification = compiled.verify(*inputs)
    assert verification, str(verification)


@pytest.mark.parametrize("name", ["losses", "eigenvalues", "solved by rank"])
def test_from_disk(name: str, tmp_path: Path) -> None:
    model, inputs = model_of(PROGRAMS, name)
    folder = spyre_mlir.compile(model, inputs, numerics="exact").save(tmp_path / "bundle")
    close(results(spyre_mlir.load(folder, numerics="exact"), inputs), results(model, inputs))


def test_a_rank_that_decides_a_size_divides_the_program() -> None:
    model, inputs = model_of(PROGRAMS, "solved by rank")
    compiled = spyre_mlir.compile(model, inputs, numerics="exact")
    assert isinstance(compiled, PartedModel)
    single = A[:, :1].expand(5, 3), B
    assert results(compiled, single)[1].shape == results(model, single)[1].shape == (0,)


REFUSED: dict[str, tuple[str, Callable[[], tuple[Tensor, ...]], str]] = {
    "start": ("narrowed", lambda: (A, torch.tensor(4)), "exceeds dimension size"),
    "variance": ("likelihoods", lambda: (A, A, -A.abs()), "variances must not be below 0"),
    "weight": ("weighted", lambda: (A, torch.tensor([1, -2, 0]), torch.ones(3)), "weights must not be below 0"),
    "length": ("losses", lambda: (*LOSS[:2], torch.tensor([7, 5, 6]), LOSS[3]), "input_lengths"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_eager_refuses_is_an_error_of_the_call(case: str) -> None:
    name, make, message = REFUSED[case]
    model, inputs = model_of(PROGRAMS, name)
    compiled = spyre_mlir.compile(model, inputs, numerics="exact")
    with pytest.raises((RuntimeError, ValueError)):
        model(*make())
    with pytest.raises(SpyreError, match=message) as caught:
        compiled(*make())
    assert "functions.py:" in str(caught.value)


def test_a_number_of_dimensions_that_data_decides_is_refused() -> None:
    model, _ = model_of({"batch": (solved_by_rank, ())}, "batch")
    with pytest.raises(
        UnsupportedError, match=r"decides how many dimensions the residuals of linalg\.lstsq by gelss have"
    ):
        spyre_mlir.compile(model, (A.expand(2, 5, 3), B.expand(2, 5, 2)))
