"""Inputs, steps and results of a divided program, without a compiler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.export import Dim

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.data_sizes.calls import (
    DividedCall,
    flat,
    host_call_text,
    import_divided,
    piece_model,
    place_of_call,
    symbolic_examples,
    whole_results,
)
from spyre_mlir.frontend.data_sizes.dividing import DividedProgram, Piece, SizingCall
from spyre_mlir.frontend.program.tree_classes import is_tree_node
from tests.functions import FunctionModel
from tests.unit.frontend.data_sizes.programs import X, division, shifted


def run(program: DividedProgram, *args: Any, **kwargs: Any) -> Any:
    """Runs the pieces as models of torch."""
    call = DividedCall(program, args, kwargs)
    for step in program.steps:
        if isinstance(step, Piece):
            call.keep(step, piece_model(step, "Part")(*call.inputs_of(step)))
        else:
            call.run_on_host(step)
    return call.results()


def test_steps_give_what_the_model_gives() -> None:
    for x in (X, X - 2, X - 0.9):
        assert torch.equal(run(division(shifted), x), shifted(x))


def test_results_are_nested_as_the_model_nests_them() -> None:
    got = run(division(lambda x: {"found": x[x > 0], "others": [None, x]}), X)
    assert got["others"][0] is None
    assert torch.equal(got["others"][1], X)
    assert torch.equal(got["found"], X[X > 0])
    assert [tuple(leaf.shape) for leaf in flat(got)] == [(6,), (3, 4)]
    assert [leaf.tolist() for leaf in flat((2, None, "text", True))] == [2, True]


@dataclass
class Chosen:
    found: Tensor
    total: Tensor


def test_dataclasses_are_inputs_and_results() -> None:
    """torch does not know them outside of a call."""

    def chosen(given: Chosen) -> Chosen:
        return Chosen(given.found[given.found > 0], given.total + given.found.sum())

    given = Chosen(X, torch.tensor(2.0))
    got = run(division(chosen, given), given)
    assert torch.equal(got.found, X[X > 0])
    assert got.total == 2 + X.sum()
    assert [leaf.tolist() for leaf in flat(given)] == [X.tolist(), 2.0]
    assert not is_tree_node(Chosen)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((X[:2],), r"argument 'args_0': expected float32\[3, 4\], got float32\[2, 4\]"),
        ((X.double(),), r"expected float32\[3, 4\], got float64\[3, 4\]"),
        ((3,), r"argument 'args_0': expected float32\[3, 4\], got int"),
        ((X, X), "the call has inputs"),
    ],
)
def test_inputs_that_do_not_fit(args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        DividedCall(division(shifted), args, {})


def test_inputs_may_come_by_their_names_in_any_order() -> None:
    class Between(torch.nn.Module):
        def forward(self, x: Tensor, low: Tensor, *, high: Tensor, scale: Tensor) -> Tensor:
            return x[(x > low) & (x < high)] * scale

    one, two, four = torch.full((3, 4), 0.1), torch.full((3, 4), 2.5), torch.tensor(4.0)
    exported = torch.export.export(Between(), (X, one), {"high": two, "scale": four})
    expected = X[(one < X) & (two > X)] * 4
    call = {"scale": four, "low": one, "high": two}
    assert len(expected) > 0
    assert torch.equal(run(import_divided("between", exported), X, **call), expected)
    assert torch.equal(run(import_divided("between", exported), x=X, **call), expected)


def test_a_number_is_the_one_that_it_was_made_for() -> None:
    program = division(lambda x, n: x[x > n] * n, X, 0)
    assert torch.equal(run(program, X, 0), X[X > 0] * 0)
    with pytest.raises(InputError, match="is 2, but the program was made for 0"):
        DividedCall(program, (X, 2), {})
    with pytest.raises(InputError, match="is False, but the program was made for 0"):
        DividedCall(program, (X, False), {})


def test_what_eager_refuses_is_an_error_with_a_place() -> None:
    def taken(x: Tensor, i: Tensor) -> Any:
        return torch.repeat_interleave(x, i, dim=0)

    with pytest.raises(InputError, match=r"refuses the values of this call: .*negative") as no:
        run(division(taken, X, torch.tensor([1, 2, 0])), X, torch.tensor([1, -2, 0]))
    assert "functions.py" in str(no.value)


def test_examples_have_sizes_of_their_own() -> None:
    mask, behind = (step for step in division(shifted).steps if isinstance(step, Piece))
    found = symbolic_examples(mask)
    assert found is not None
    assert found[1] is None
    found = symbolic_examples(behind)
    assert found is not None
    examples, symbols = found
    assert symbols is not None
    by_rank = {e.dim(): (tuple(e.shape), s) for e, s in zip(examples, symbols, strict=True)}
    assert by_rank[1] == ((8,), {0: Dim.AUTO})


def test_a_number_from_data_leaves_no_example() -> None:
    def counted(i: Tensor) -> Any:
        n = i.max().item()
        torch._check(n >= 0)
        return torch.arange(n) + 1

    (piece,) = [s for s in division(counted, torch.tensor([2, 3])).steps if isinstance(s, Piece)][1:]
    assert symbolic_examples(piece) is None


def test_a_host_step_as_text() -> None:
    step = next(s for s in division(shifted).steps if isinstance(s, SizingCall))
    assert host_call_text(step) == "%index = aten.index.Tensor(%args_0, %gt)"
    op, place = place_of_call(step)
    assert op == "aten.index.Tensor"
    assert "functions.py" in place


def test_the_reference_is_the_model_or_its_graph() -> None:
    model = FunctionModel(shifted)
    exported = torch.export.export(model, (X,), strict=False)
    for reference in (model, exported):
        (got,) = whole_results(reference, (X,), {})
        assert torch.equal(got, shifted(X))
