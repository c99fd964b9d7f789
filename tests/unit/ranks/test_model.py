"""All ranks of saved bundles in one process, against one rank and against results worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.errors import FaultKind, InputError, MachineFault
from spyre_mlir.ranks.model import RankedModel, load_ranks
from tests.end_to_end.ranks.programs import INNER, WIDTH, ParallelMlp, whole_mlp
from tests.unit.ranks.compiled import X, as_rank, compiled, together


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    assert X.shape[1] == WIDTH < INNER
    models = [compiled(lambda _: ParallelMlp(whole_mlp()), rank, X) for rank in (0, 1)]
    return spyre_mlir.save_ranks(models, tmp_path_factory.mktemp("saved"))


def test_two_ranks_are_one(saved: Path) -> None:
    ranked = load_ranks(saved)
    first, second = ranked(X)
    torch.testing.assert_close(first, whole_mlp()(X).detach(), atol=4e-3, rtol=0)
    assert first.numpy().tobytes() == second.numpy().tobytes()
    assert [r.numpy().tobytes() for r in ranked.run([(X,), (X,)])] == [first.numpy().tobytes()] * 2
    assert repr(ranked) == "<RankedModel ParallelMlp: 2 ranks>"


def test_programs_of_equal_ranks_share_their_files(saved: Path) -> None:
    shared = {p.name for p in (saved / "rank_0").rglob("*") if p.is_file() and p.stat().st_nlink == 2}
    assert {"bundle.mlir", "program.mlir"} <= shared
    assert "weights.safetensors" not in shared


class Deep(nn.Module):
    """Layers of products and functions, each ending in a sum over the ranks."""

    def __init__(self, rank: int, ranks: int, layers: int = 4) -> None:
        super().__init__()
        torch.manual_seed(0)
        own, self.alone = slice(rank * WIDTH // ranks, (rank + 1) * WIDTH // ranks), ranks == 1
        whole = [(torch.randn(2, WIDTH, WIDTH) / 8) for _ in range(layers)]
        self.up = nn.ParameterList(pair[0][:, own].clone() for pair in whole)
        self.down = nn.ParameterList(pair[1][own].clone() for pair in whole)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for up, down in zip(self.up, self.down, strict=True):
            own = x @ up
            for _ in range(4):
                own = torch.tanh(own + 0.5).abs() - 0.25
            own = own @ down
            x = own if self.alone else together("all_reduce", own, "sum")
        return x


def test_layers_between_collectives_are_functions_on_every_rank() -> None:
    models = [compiled(lambda rank: Deep(rank, 2), rank, X) for rank in (0, 1)]
    for model in models:
        text = model.mlir("spyre.loop")
        assert text.count("func.call @") == text.count("all_reduce") == 4
    first, second = RankedModel(models)(X)
    assert first.numpy().tobytes() == second.numpy().tobytes()
    torch.testing.assert_close(first, Deep(0, 1)(X).detach(), atol=1e-2, rtol=0)
    with as_rank(0), torch.no_grad():
        flat = spyre_mlir.compile(Deep(0, 2), (X,), host_fallback="error", regions=False)
    assert "func.call" not in flat.mlir("spyre.loop")


class Meets(nn.Module):
    """Calls what it is told to, one after the other, each on the result of the one before."""

    def __init__(self, calls: list[tuple[str, object]]) -> None:
        super().__init__()
        self.calls = calls

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for name, argument in self.calls:
            x = together(name, x + 1, argument)
        return x


def ranked(*of_ranks: list[tuple[str, object]]) -> RankedModel:
    return RankedModel([compiled(lambda _, c=calls: Meets(c), n, X) for n, calls in enumerate(of_ranks)])


def test_ranks_have_inputs_of_their_own() -> None:
    first, second = ranked(*[[("all_reduce", "sum"), ("broadcast", 1)]] * 2).run([(X.round(),), (X.round() * 4,)])
    wanted = X.round() + 1 + X.round() * 4 + 1 + 1
    np.testing.assert_array_equal(first.numpy(), wanted.numpy())
    np.testing.assert_array_equal(second.numpy(), wanted.numpy())


def test_different_collectives_are_named_with_their_places() -> None:
    with pytest.raises(MachineFault) as fault:
        ranked([("all_reduce", "sum")], [("broadcast", 1)])(X)
    assert fault.value.kind is FaultKind.MISMATCHED_COLLECTIVE
    message = str(fault.value)
    assert "rank 0 has" in message
    assert "all_reduce at " in message
    assert "rank 1 has" in message
    assert "broadcast at " in message
    assert message.count("test_model.py:") >= 2, "both places"


def test_another_argument_is_another_collective() -> None:
    with pytest.raises(MachineFault, match=r"rank 0 has reduce_op sum in .*; rank 1 has reduce_op max in "):
        ranked([("all_reduce", "sum")], [("all_reduce", "max")])(X)


def test_a_rank_that_waits_for_one_that_has_ended() -> None:
    with pytest.raises(MachineFault) as fault:
        ranked([("all_reduce", "sum"), ("all_reduce", "max")], [("all_reduce", "sum")])(X)
    assert fault.value.kind is FaultKind.DEADLOCK
    message = str(fault.value)
    assert "rank 0 waits for ranks 0, 1 in _c10d_functional::all_reduce at " in message
    assert "rank 1 has ended" in message


def test_an_error_of_a_rank_has_its_number() -> None:
    two = ranked([("all_reduce", "sum")], [("all_reduce", "sum")])
    with pytest.raises(InputError, match="rank 1: "):
        two.run([(X,), (X[:1],)])
    assert len(two(X)) == 2, "a later run starts anew"


def test_as_many_inputs_as_ranks() -> None:
    with pytest.raises(InputError, match="1 inputs are given for 2 ranks"):
        ranked([("all_reduce", "sum")], [("all_reduce", "sum")]).run([(X,)])


def test_a_folder_without_ranks(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no rank_0 in this folder"):
        load_ranks(tmp_path)
