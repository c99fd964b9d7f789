"""Where a program is cut, and what the pieces read and give."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from spyre_mlir.frontend.capture.export import export_model
from spyre_mlir.frontend.data_sizes.calls import import_divided
from spyre_mlir.frontend.data_sizes.dividing import Piece, SizingCall, evaluated
from tests.unit.frontend.data_sizes.programs import X, division, shifted

SIZE = torch.ops.aten.sym_size.int
ASSERTION = torch.ops.aten._assert_scalar.default


def test_a_program_is_cut_at_what_makes_a_size() -> None:
    """Checks of the size stand in front of the piece that it is for."""
    steps = division(shifted).steps
    kinds = [type(step) for step in steps]
    assert kinds[:2] == [Piece, SizingCall]
    assert kinds[-1] is Piece
    assert {step.node.target for step in steps[2:-1] if isinstance(step, SizingCall)} == {ASSERTION}
    assert isinstance(steps[1], SizingCall)
    assert steps[1].node.target is torch.ops.aten.index.Tensor


def test_pieces_ask_their_inputs_for_sizes() -> None:
    """No number is an argument: a size is a symbol of the piece."""
    piece = division(shifted).steps[-1]
    assert isinstance(piece, Piece)
    assert all(isinstance(node.meta["val"], Tensor) for node in piece.inputs)
    assert SIZE in {node.target for node in piece.module.graph.nodes}
    found = X[X > 0]
    given = [found if node.meta["val"].dim() == 1 else X for node in piece.inputs]
    assert torch.equal(piece.module(*given)[0], found[:, None] + X.sum())


def test_a_piece_gives_what_others_read() -> None:
    def twice(x: Tensor) -> Any:
        y = x * 2
        z = y + 1
        return y[z > 0]

    first = division(twice).steps[0]
    assert isinstance(first, Piece)
    assert [node.meta["val"].dtype for node in first.outputs] == [torch.float32, torch.bool]


def test_a_piece_repeats_what_it_reads_repeated() -> None:
    """The piece in front gives the tensor that is repeated; results of the model are given as they are."""

    def written(x: Tensor) -> Any:
        mask = x.sum(-1, keepdim=True) > 0
        return x.masked_scatter(mask.expand(3, 4), x[x > 0] * 2), mask.expand(3, 4)

    first, *_, last = (step for step in division(written).steps if isinstance(step, Piece))
    given = {node.meta["val"].shape for node in last.inputs if node.meta["val"].dtype is torch.bool}
    assert given == {torch.Size([3, 1])}
    expand = torch.ops.aten.expand.default
    assert not any(node.target is expand for node in first.outputs)
    assert any(node.target is expand for node in last.outputs)
    assert last.module.graph.find_nodes(op="call_function", target=expand)


def test_weights_are_the_pieces_own() -> None:
    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.arange(4.0))

        def forward(self, x: Tensor) -> Tensor:
            return (x * self.weight)[x > 0]

    model = Scaled()
    program = import_divided("Scaled", export_model(model, (X,), {}))
    piece = program.steps[0]
    assert isinstance(piece, Piece)
    assert [id(p) for p in piece.module.parameters()] == [id(model.weight)]


def test_items_stand_with_their_call() -> None:
    """The second item of a `topk` is read behind the cut."""

    def best(x: Tensor) -> Any:
        values, places = torch.topk(x, 2)
        found = values[values > 0]
        return found, places

    program = division(best)
    first = program.steps[0]
    assert isinstance(first, Piece)
    assert {node.meta["val"].dtype for node in first.outputs} >= {torch.float32, torch.int64}


def test_numbers_follow_from_what_is_known() -> None:
    program = division(shifted)
    (made,) = [s.node for s in program.steps if isinstance(s, SizingCall) and s.node.meta.get("unbacked_bindings")]
    size = next(user for user in made.users if user.target is SIZE)
    assert evaluated(size, {made: torch.zeros(7)}) == 7


def test_what_is_written_is_an_argument_and_no_result() -> None:
    def written(x: Tensor) -> Any:
        x.add_(1)
        return x[x > 0]

    program = division(written, X.clone())
    ((target, value),) = program.writes
    assert target is program.inputs[0]
    assert len(program.results) == 1
    first = program.steps[0]
    assert isinstance(first, Piece)
    assert value in first.outputs


def test_a_draw_is_a_step_of_its_own() -> None:
    program = division(lambda x: x[torch.rand(3, 4) > 0.5])
    assert isinstance(program.steps[0], SizingCall)
    assert torch.Tag.nondeterministic_seeded in program.steps[0].node.target.tags  # type: ignore[union-attr]


def test_a_draw_that_reads_a_tensor_waits_for_it() -> None:
    steps = division(lambda x: x[torch.bernoulli(x.abs()) > 0.5]).steps
    assert [type(step) for step in steps[:2]] == [Piece, SizingCall]


def test_a_piece_has_the_graphs_of_its_branches() -> None:
    def branching(x: Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,)), x.nonzero()

    first = division(branching).steps[0]
    assert isinstance(first, Piece)
    assert torch.equal(first.module(X.abs())[0], X.abs() + 1)
    assert torch.equal(first.module(-X.abs())[0], X.abs() * -2)


def test_a_branch_that_makes_a_size_is_a_step_of_the_host() -> None:
    def counting(x: Tensor) -> Any:
        return torch.cond(x.sum() > 0, lambda x: x[x > 0].sum(), lambda x: x.sum(), (x,))

    (step,) = [s for s in division(counting).steps if isinstance(s, SizingCall)]
    assert str(step.node.target) == "cond"
