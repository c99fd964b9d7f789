"""Recurrent layers, against the recurrences of torch's documentation in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.errors import ConstraintError, UnsupportedError
from spyre_mlir.ops.composed.nn import recurrent
from tests.unit.ops.evaluation import all_same, budgets, calling, check_samples, made, results, types

RNG = np.random.default_rng(9)
WIDE, OWN, BATCH, STEPS = 3, 2, 2, 3
GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
State = tuple[np.ndarray, ...]
FACTS: dict[str, Any] = {
    "has_biases": True,
    "num_layers": 1,
    "dropout": 0.0,
    "train": False,
    "bidirectional": False,
    "batch_first": False,
}


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def step(kind: str, x: np.ndarray, state: State, w: list[np.ndarray], biases: bool) -> State:
    """One step; the gates lie in the order of torch: i, f, g, o and r, z, n."""
    b_ih, b_hh = (w[2], w[3]) if biases else (0.0, 0.0)
    given, own = x @ w[0].T + b_ih, state[0] @ w[1].T + b_hh
    if kind == "gru":
        (ri, zi, ni), (rh, zh, nh) = np.split(given, 3, 1), np.split(own, 3, 1)
        update = sigmoid(zi + zh)
        return ((1 - update) * np.tanh(ni + sigmoid(ri + rh) * nh) + update * state[0],)
    if kind != "lstm":
        return (np.tanh(given + own) if kind == "rnn_tanh" else np.maximum(given + own, 0.0),)
    entry, forget, new, shown = np.split(given + own, 4, 1)
    cell = sigmoid(forget) * state[1] + sigmoid(entry) * np.tanh(new)
    hidden = sigmoid(shown) * np.tanh(cell)
    projection = w[4 if biases else 2 :]
    return (hidden @ projection[0].T if projection else hidden, cell)


def parameters(gates: int, wide: int, own: int, biases: bool = True, shown: int = 0) -> list[np.ndarray]:
    """Of one layer in one direction; `shown` features if the hidden state is projected."""
    shapes: list[tuple[int, ...]] = [(gates * own, wide), (gates * own, shown or own)]
    shapes += [(gates * own,)] * (2 * biases) + [(shown, own)] * bool(shown)
    return [RNG.normal(size=s) for s in shapes]


def unrolled(kind: str, x: np.ndarray, starts: State, params: list[np.ndarray], facts: dict[str, Any]) -> State:
    """All layers; `x` is [time, batch, features]."""
    directions, biases = 1 + facts["bidirectional"], facts["has_biases"]
    each, ends = len(params) // (directions * facts["num_layers"]), []
    for layer in range(facts["num_layers"]):
        sides = []
        for direction in range(directions):
            at = layer * directions + direction
            own, state = params[at * each :][:each], tuple(s[at] for s in starts)
            seen: list[Any] = [None] * len(x)
            for t in reversed(range(len(x))) if direction else range(len(x)):
                state = step(kind, x[t], state, own, biases)
                seen[t] = state[0]
            sides.append(np.stack(seen))
            ends.append(state)
        x = np.concatenate(sides, -1)
    return (x, *(np.stack(s) for s in zip(*ends, strict=True)))


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"has_biases": False},
        {"bidirectional": True},
        {"num_layers": 2, "batch_first": True},
        {"num_layers": 2, "bidirectional": True, "has_biases": False, "train": True},
    ],
    ids=str,
)
def test_layers(kind: str, more: dict[str, Any]) -> None:
    facts = FACTS | more
    directions, layers = 1 + facts["bidirectional"], facts["num_layers"]
    x = RNG.normal(size=(STEPS, BATCH, WIDE))
    states = tuple(RNG.normal(size=(layers * directions, BATCH, OWN)) for _ in range(1 + (kind == "lstm")))
    params: list[np.ndarray] = []
    for at in range(layers * directions):
        wide = WIDE if at < directions else OWN * directions
        params += parameters(GATES[kind], wide, OWN, facts["has_biases"])
    wanted = unrolled(kind, x, states, params, facts)
    first = facts["batch_first"]
    hx = list(states) if kind == "lstm" else states[0]
    got = results(f"{kind}.input", x.swapaxes(0, 1) if first else x, hx, params, **facts)
    all_same(got, [wanted[0].swapaxes(0, 1) if first else wanted[0], *wanted[1:]])


@pytest.mark.parametrize("biases", [True, False])
def test_a_hidden_state_is_projected(biases: bool) -> None:
    facts, x = FACTS | {"has_biases": biases}, RNG.normal(size=(STEPS, BATCH, WIDE))
    states = RNG.normal(size=(1, BATCH, 2)), RNG.normal(size=(1, BATCH, 4))
    params = parameters(4, WIDE, 4, biases, shown=2)
    all_same(results("lstm.input", x, list(states), params, **facts), unrolled("lstm", x, states, params, facts))


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("biases", [True, False])
def test_one_step(kind: str, biases: bool) -> None:
    x = RNG.normal(size=(BATCH, WIDE))
    states = tuple(RNG.normal(size=(BATCH, OWN)) for _ in range(1 + (kind == "lstm")))
    params = parameters(GATES[kind], WIDE, OWN, biases)
    hx = list(states) if kind == "lstm" else states[0]
    all_same(results(f"{kind}_cell", x, hx, *params), step(kind, x, states, params, biases))


@pytest.mark.parametrize("kind", ["lstm", "rnn_tanh"])
def test_one_bias_may_be_absent(kind: str) -> None:
    x, states = RNG.normal(size=(BATCH, WIDE)), (RNG.normal(size=(BATCH, OWN)), RNG.normal(size=(BATCH, OWN)))
    params, zero = parameters(GATES[kind], WIDE, OWN), np.zeros(GATES[kind] * OWN)
    hx = list(states) if kind == "lstm" else states[0]
    for at in (2, 3):
        own, other = [*params], [*params]
        own[at], other[at] = None, zero  # type: ignore[call-overload]
        all_same(results(f"{kind}_cell", x, hx, *own), step(kind, x, states, other, biases=True))


@pytest.mark.parametrize("kind", GATES)
def test_all_inputs_are_one_product(kind: str) -> None:
    x, states = np.zeros((STEPS, BATCH, WIDE)), [np.zeros((1, BATCH, OWN))] * 2
    params = parameters(GATES[kind], WIDE, OWN)
    ops = made(calling(f"{kind}.input", **FACTS), x, states if kind == "lstm" else states[0], params)
    assert ops.count("linear") == 1 + STEPS


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("first", [True, False])
def test_many_steps_are_a_loop(kind: str, first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways and without some parameters, a loop gives what the recurrence does."""
    monkeypatch.setattr(recurrent, "MOST_UNROLLED", 2)
    facts = FACTS | {"bidirectional": True, "has_biases": first, "batch_first": first}
    x, states = RNG.normal(size=(STEPS, BATCH, WIDE)), (RNG.normal(size=(2, BATCH, OWN)),) * (1 + (kind == "lstm"))
    params = [p for _ in range(2) for p in parameters(GATES[kind], WIDE, OWN, first)]
    wanted = unrolled(kind, x, states, params, facts)
    hx, given = list(states) if kind == "lstm" else states[0], x.swapaxes(0, 1) if first else x
    got = results(f"{kind}.input", given, hx, params, **facts)
    all_same(got, [wanted[0].swapaxes(0, 1) if first else wanted[0], *wanted[1:]])
    told = types(calling(f"{kind}.input", **facts), given, hx, params)
    assert [shape for shape, _ in told] == [g.shape for g in got]


@pytest.mark.parametrize(("kind", "more"), [("lstm", {}), ("gru", {"batch_first": True})])
def test_an_input_without_batches_is_refused(kind: str, more: dict[str, Any]) -> None:
    state = np.zeros((1, BATCH, OWN))
    body = calling(f"{kind}.input", **(FACTS | more))
    with pytest.raises(ConstraintError, match="C1: input of rank 2, expected 3"):
        types(body, np.zeros((3, WIDE)), [state] * 2 if kind == "lstm" else state, parameters(GATES[kind], WIDE, OWN))


def dropped(**facts: Any) -> list[np.ndarray]:
    """Two layers, or one, with a dropout of a half in between."""
    facts = FACTS | {"dropout": 0.5, "num_layers": 2} | facts
    layers = facts["num_layers"]
    params = [p for at in range(layers) for p in parameters(1, WIDE if at == 0 else OWN, OWN)]
    return results("rnn_relu.input", np.ones((1, 1, WIDE)), np.ones((layers, 1, OWN)), params, **facts)


def test_dropout_between_layers_in_training_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"dropout 0\.5 between layers") as caught:
        dropped(train=True)
    assert "call model.eval() before export" in str(caught.value)
    for harmless in ({"train": False}, {"train": True, "num_layers": 1}, {"train": True, "dropout": 0.0}):
        assert len(dropped(**harmless)) == 2


def test_declarations() -> None:
    check_samples(recurrent.__name__)
    assert set(budgets(recurrent.__name__).values()) == {(16, False)}
    names = {f"{kind}{suffix}" for kind in GATES for suffix in ("", "_cell")}
    assert set(budgets(recurrent.__name__)) == names


def test_layers_in_training_without_dropout_draw_no_random_numbers() -> None:
    x = torch.rand(2, 1, 3)
    spyre_mlir.compile(nn.RNN(3, 4), (x,), numerics="exact").verify(x)


def test_a_step_more_costs_the_same_whatever_the_number_of_steps() -> None:
    counts: list[int] = []
    for steps in (2, 3, 4):
        compiled = spyre_mlir.compile(nn.LSTM(64, 64).eval(), (torch.rand(steps, 1, 64),), numerics="exact")
        text = compiled.mlir("spyre.kernel")
        counts.append(text.count("spyre.kernel.compute") + text.count("spyre.kernel.restickify"))
    assert counts[2] - counts[1] == counts[1] - counts[0] <= 12
