"""Operators that ask whether there are elements, or equal sizes, behind sizes that data decides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.errors import InputError
from tests.end_to_end.importing.against_eager import close, results
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")

NUMBERS = torch.linspace(-1.0, 1.0, 24).reshape(4, 6)


def call(count: int) -> tuple[Tensor, Tensor]:
    """Four rows, with a class each; so many of the classes are above zero."""
    return NUMBERS, torch.where(torch.arange(4) < count, torch.tensor([3, 1, 5, 2]), 0)


def loss(x: Tensor, i: Tensor) -> Any:
    return nn.functional.cross_entropy(x[i > 0], i[i > 0])


def attention(x: Tensor, i: Tensor) -> Any:
    rows = x[i > 0][None, None]
    return nn.functional.scaled_dot_product_attention(rows, x[None, None], x[None, None])


def rolled(x: Tensor, i: Tensor) -> Any:
    return x[i > 0].roll(1, 0) * 2


def differences(x: Tensor, i: Tensor) -> Any:
    return torch.nonzero(i)[:, 0].diff(), torch.cdist(x[i > 0], x)


def attention_by_a_mask(x: Tensor, i: Tensor) -> Any:
    """Which keys are seen, is selected by a mask that is made again."""
    rows, seen = x[i > 0][None, None], (x[:, 1] < 0)[i > 0][None]
    return nn.functional.scaled_dot_product_attention(x[None, None], rows, rows, attn_mask=seen)


PROGRAMS = (loss, attention, rolled, differences)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_calls_with_elements_are_eager(program: Callable[..., Any]) -> None:
    compiled = spyre_mlir.compile(FunctionModel(program), call(3), numerics="exact")
    for count in (3, 1, 4, 2):
        close(results(compiled, call(count)), results(program, call(count)))
    verification = compiled.verify(*call(2))
    assert verification, str(verification)


def norm(x: Tensor, i: Tensor) -> Any:
    return nn.functional.batch_norm(x[i > 0], torch.zeros(6), torch.ones(6)), torch.logsumexp(x[i > 0], 1)


@pytest.mark.parametrize(
    "program", [attention, attention_by_a_mask, rolled, differences, norm], ids=lambda p: p.__name__
)
def test_a_call_without_elements_is_eager(program: Callable[..., Any], tmp_path: Path) -> None:
    compiled = spyre_mlir.compile(FunctionModel(program), call(3), numerics="exact")
    loaded = spyre_mlir.load(compiled.save(tmp_path / "saved"), numerics="exact")
    for model in (compiled, loaded):
        for count in (0, 2):
            close(results(model, call(count)), results(program, call(count)))
    verification = compiled.verify(*call(0))
    assert verification, str(verification)


def test_a_call_without_elements_draws_what_eager_draws() -> None:
    def noisy(x: Tensor, i: Tensor) -> Any:
        return torch.rand(3), x[i > 0].roll(1, 0)

    compiled = spyre_mlir.compile(FunctionModel(noisy), call(3), numerics="exact")
    torch.manual_seed(3)
    wanted = noisy(*call(0)), torch.rand(2)
    torch.manual_seed(3)
    torch.testing.assert_close((compiled(*call(0)), torch.rand(2)), wanted)


def test_a_size_that_a_function_of_torch_refuses_is_an_error_of_the_call() -> None:
    def statistics(x: Tensor, i: Tensor) -> Any:
        return nn.functional.batch_norm(x[i > 0], None, None, training=True)

    compiled = spyre_mlir.compile(FunctionModel(statistics), call(3), numerics="exact")
    close(results(compiled, call(2)), results(statistics, call(2)))
    with pytest.raises(InputError, match=r"aten.* gives a size of 1 in this call, expected another one than 1") as no:
        compiled(*call(1))
    assert "functions.py:" in str(no.value.where)


def test_a_loss_without_elements_is_eager(tmp_path: Path) -> None:
    """Whether there are rows, it does not ask; an exported program and a saved one know, too."""
    exported = torch.export.export(FunctionModel(loss), call(3))
    saved = spyre_mlir.compile(exported, numerics="exact").save(tmp_path / "saved")
    loaded = spyre_mlir.load(saved, numerics="exact")
    for count in (2, 0, 4):
        torch.testing.assert_close(loaded(*call(count)), loss(*call(count)), equal_nan=True)


def test_two_sizes_of_one_mask_are_equal() -> None:
    def distances(x: Tensor, i: Tensor) -> Any:
        return nn.functional.l1_loss(x[i > 0], (x * 2)[i > 0]), torch.cosine_similarity(x[i > 0], x[i > 0] + 1)

    compiled = spyre_mlir.compile(FunctionModel(distances), call(3), numerics="exact")
    for count in (3, 1, 4):
        close(results(compiled, call(count)), results(distances, call(count)))


def distance(x: Tensor, i: Tensor) -> Any:
    return nn.functional.l1_loss(x[i > 0], x[x[:, 0] < -0.2])


def attention_to_other_values(x: Tensor, i: Tensor) -> Any:
    keys, values = (rows[None, None] for rows in (x[i > 0], x[x[:, 0] < -0.2]))
    return nn.functional.scaled_dot_product_attention(x[None, None], keys, values)


@pytest.mark.parametrize("program", [distance, attention_to_other_values], ids=lambda p: p.__name__)
def test_two_sizes_that_differ_are_an_error_of_the_call(program: Callable[..., Any]) -> None:
    """Eager reads values that are not there, in attention to more keys."""
    compiled = spyre_mlir.compile(FunctionModel(program), call(2), numerics="exact")
    close(results(compiled, call(2)), results(program, call(2)))
    with pytest.raises(
        InputError, match=r"gives a size of \d in this call, and aten\.index\.Tensor at .* expected equal"
    ):
        compiled(*call(3))


def test_the_largest_of_no_number_is_an_error_of_the_call() -> None:
    """Torch says so of a constant without elements, as it is in a program for none."""
    compiled = spyre_mlir.compile(FunctionModel(lambda x, i: x[i > 0].max()), call(3), numerics="exact")
    assert compiled(*call(2)) == NUMBERS[1].max()
    with pytest.raises(InputError, match=r"torch refuses the sizes of this call: max\(\)"):
        compiled(*call(0))


def test_counts_of_classes_are_a_list(tmp_path: Path) -> None:
    """As many as `minlength` says: a class above is an error of the call."""

    def routed(x: Tensor, i: Tensor) -> Any:
        order, counts = i.argsort(stable=True), torch.bincount(i, minlength=6)
        parts = x[order].split(counts.tolist())
        return torch.zeros_like(x).index_copy(0, order, torch.cat([part * n for n, part in enumerate(parts)]))

    compiled = spyre_mlir.compile(FunctionModel(routed), call(3), numerics="exact")
    loaded = spyre_mlir.load(compiled.save(tmp_path / "saved"), numerics="exact")
    for model in (compiled, loaded):
        for count in (3, 0, 4):
            close(results(model, call(count)), results(routed, call(count)))
    with pytest.raises(InputError, match=r"aten\.bincount gives a size of 8 in this call, expected 6"):
        compiled(NUMBERS, torch.tensor([0, 7, 1, 2]))
