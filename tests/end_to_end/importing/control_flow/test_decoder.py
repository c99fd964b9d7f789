"""A language model that generates in one program: the loop, the decision to end and the caches are the program's."""

from __future__ import annotations

import pytest
import torch

import spyre_mlir
from spyre_mlir.dialects.spyre.kernel import FromDeviceOp, ToDeviceOp
from spyre_mlir.dialects.tensors import shape_of
from tests.end_to_end.importing.control_flow.decoder import END, Decoder, by_hand, prompt

PROMPTS = ((3, 9), (20,), (1, 2, 3, 4), (5, END, 7))


LAYERS = (1, pytest.param(2, marks=pytest.mark.slow(reason="takes a minute; one layer runs by default")))


@pytest.fixture(scope="module", params=LAYERS)
def model(request: pytest.FixtureRequest) -> Decoder:
    return Decoder(request.param).eval()


@pytest.fixture(scope="module")
def generating(model: Decoder) -> spyre_mlir.CompiledModel:
    compiled = spyre_mlir.compile(model, prompt(3, 9), numerics="exact")
    assert isinstance(compiled, spyre_mlir.CompiledModel)
    return compiled


@pytest.mark.parametrize("tokens", PROMPTS, ids=str)
def test_tokens_are_those_of_a_loop_in_python(
    tokens: tuple[int, ...], model: Decoder, generating: spyre_mlir.CompiledModel
) -> None:
    wanted = by_hand(model, *prompt(*tokens))
    assert torch.equal(generating(*prompt(*tokens)), wanted)
    assert len(set(wanted.tolist())) > 2


def test_generation_ends_at_the_end_token(model: Decoder, generating: spyre_mlir.CompiledModel) -> None:
    """A model whose head prefers the end to everything else: nothing follows."""
    with torch.no_grad():
        weight = model.head.weight.clone()
        model.head.weight.zero_()
        wanted, got = by_hand(model, *prompt(3, 9)), generating(*prompt(3, 9))
        model.head.weight.copy_(weight)
    assert wanted.tolist() == prompt(3, 9)[0].tolist()
    assert torch.equal(got, wanted)


def test_every_level_gives_the_tokens(generating: spyre_mlir.CompiledModel) -> None:
    verification = generating.verify(*prompt(20))
    assert verification, str(verification)


@pytest.mark.parametrize("level", ["spyre.kernel", "superdsc"])
def test_a_trip_transfers_its_number_and_the_decision_only(level: str, generating: spyre_mlir.CompiledModel) -> None:
    module = generating._lowered.modules[level]  # pyright: ignore[reportPrivateUsage]
    functions = [op for op in module.walk() if op.name == "func.func" and str(op.properties["sym_name"]) != '"main"']
    moved = [op for f in functions for op in f.walk() if isinstance(op, ToDeviceOp | FromDeviceOp)]
    assert moved
    for op in moved:
        host = op.source if isinstance(op, ToDeviceOp) else op.result
        assert shape_of(host) == (), str(op)
