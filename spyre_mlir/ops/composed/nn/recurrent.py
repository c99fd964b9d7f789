"""Recurrent layers: one product for what all inputs give, then one product per step, in a loop if there are many.

The gates of a step lie side by side along the features. Where a gate is not a whole number of sticks the batch goes
into the lanes between two products, and every gate is still a slice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.helpers.slicing import joined, side_by_side, taken
from spyre_mlir.ops.table import OpEntry, Sample, require
from spyre_mlir.ops.value import Value

State = tuple[Value, ...]
_IN_STEPS = ("w_hh", "b_hh", "w_hr")  # the parameters that steps use
MOST_UNROLLED = 8  # steps whose kernels are written one by one; more are a loop


@dataclass(frozen=True)
class Cell:
    """One step of a kind of layer.

    Attributes:
        step: the new state from what the input gives, what the state gives, both [batch, gates * features], and the
            state.
        apart: whether the two are used apart; else they come added up, and so do their biases.
    """

    step: Callable[[Build, Value, Value, State], State]
    apart: bool = False


@dataclass(frozen=True)
class Weights:
    """The parameters of one layer in one direction."""

    w_ih: Value
    w_hh: Value
    b_ih: Value | None = None
    b_hh: Value | None = None
    w_hr: Value | None = None


def _gates(b: Build, gates: Value, state: State, start: int, count: int = 1) -> Value:
    """Some of the gates; each has as many features as the last part of the state."""
    own = state[-1].shape[-1]
    return taken(b, gates, 1, start * own, count * own)


def _lstm_step(b: Build, gates: Value, _: Value, state: State) -> State:
    opened = b.call("sigmoid", _gates(b, gates, state, 0, 2))
    new, shown = b.call("tanh", _gates(b, gates, state, 2)), b.call("sigmoid", _gates(b, gates, state, 3))
    kept = _gates(b, opened, state, 1) * state[1]
    cell = kept + _gates(b, opened, state, 0) * new
    return shown * b.call("tanh", cell), cell


def _gru_step(b: Build, given: Value, own: Value, state: State) -> State:
    opened = b.call("sigmoid", _gates(b, given, state, 0, 2) + _gates(b, own, state, 0, 2))
    reset = _gates(b, opened, state, 0) * _gates(b, own, state, 2)
    new = b.call("tanh", _gates(b, given, state, 2) + reset)
    kept = _gates(b, opened, state, 1) * (state[0] - new)
    return (new + kept,)


def _plain_step(function: str) -> Callable[[Build, Value, Value, State], State]:
    def step(b: Build, gates: Value, *_: Value | State) -> State:
        return (b.call(function, gates),)

    return step


LSTM, GRU = Cell(_lstm_step), Cell(_gru_step, apart=True)
TANH, RELU = Cell(_plain_step("tanh")), Cell(_plain_step("relu"))


def _from_input(b: Build, cell: Cell, x: Value, w: Weights) -> Value:
    """What the rows of an input give to the gates."""
    bias = w.b_ih
    if not cell.apart and w.b_hh is not None:
        bias = w.b_hh if bias is None else bias + w.b_hh
    return b.call("linear", x, w.w_ih, bias)


def _next(b: Build, cell: Cell, given: Value, state: State, w: Weights) -> State:
    own = b.call("linear", state[0], w.w_hh, w.b_hh if cell.apart else None)
    gates = given if cell.apart else given + own
    hidden, *rest = cell.step(b, gates, own, state)
    return (hidden if w.w_hr is None else b.call("linear", hidden, w.w_hr), *rest)


def _direction(
    b: Build, cell: Cell, x: Value, state: State, w: Weights, time: int, backwards: bool
) -> tuple[Value, State]:
    """One layer in one direction: the hidden states side by side along the dimension of time, and the last state."""
    outer, inner, features = x.shape
    given = _from_input(b, cell, x.reshape(outer * inner, features), w)
    given = given.view(outer, inner, given.shape[-1])
    if x.shape[time] > MOST_UNROLLED:
        return _looped(b, cell, given, state, w, time, backwards)
    seen: list[Value] = []
    steps = range(x.shape[time])
    for t in reversed(steps) if backwards else steps:
        state = _next(b, cell, b.call("select.int", given, dim=time, index=t), state, w)
        seen.append(state[0])
    return side_by_side(b, seen[::-1] if backwards else seen, time), state


def _looped(
    b: Build, cell: Cell, given: Value, state: State, w: Weights, time: int, backwards: bool
) -> tuple[Value, State]:
    """The same as a loop over the steps, which lie along dimension 0 in it."""
    present = {name: value for name in _IN_STEPS if isinstance(value := getattr(w, name), Value)}

    def step(
        b: Build, carried: Sequence[Value], entries: Sequence[Value], others: Sequence[Value]
    ) -> tuple[State, State]:
        own = replace(w, **dict(zip(present, others, strict=True)))
        state = _next(b, cell, entries[0].squeeze(0), tuple(carried), own)
        return state, (state[0].unsqueeze(0),)

    steps = given if time == 0 else given.transpose(0, 1)
    ends, (seen,) = b.loop(step, state, [steps], tuple(present.values()), backwards=backwards)
    return seen if time == 0 else seen.transpose(0, 1), ends


def _layers(
    b: Build,
    cell: Cell,
    input: Value,
    states: Sequence[Value],
    params: Sequence[Value],
    *,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Value, ...]:
    """A stack of layers: the hidden states of the last one, and the last states of all."""
    require("C1", input.rank == 3, f"input of rank {input.rank}, expected 3")
    if dropout and train and num_layers > 1:
        raise UnsupportedError(f"dropout {dropout} between layers", hint="call model.eval() before export")
    directions, time, x = 1 + bidirectional, 1 if batch_first else 0, input
    each = len(params) // (num_layers * directions)
    ends: list[State] = []
    for layer in range(num_layers):
        outs: list[Value] = []
        for d in range(directions):
            at = layer * directions + d
            start = tuple(b.call("select.int", s, dim=0, index=at) for s in states)
            own = _weights(params[at * each : (at + 1) * each], has_biases)
            out, end = _direction(b, cell, x, start, own, time, backwards=d == 1)
            outs.append(out)
            ends.append(end)
        x = joined(b, outs, -1)
    last = (side_by_side(b, several, 0) for several in zip(*ends, strict=True))
    return (x, *last)


def _weights(params: Sequence[Value], has_biases: bool) -> Weights:
    """The parameters of a layer: two weights, two biases if there are any, a projection if there is one."""
    plain = 4 if has_biases else 2
    biases = tuple(params[2:4]) if has_biases else (None, None)
    projection = params[plain] if len(params) > plain else None
    return Weights(params[0], params[1], biases[0], biases[1], projection)


@ATEN.composed(aten=["lstm.input"])
def lstm(
    b: Build,
    input: Value,
    hx: Sequence[Value],
    params: Sequence[Value],
    *,
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Value, ...]:
    """Layers of long short-term memory: the hidden states, the last ones, and the last cells.

    Constraints:
        C1: the input has three dimensions.
    """
    return _layers(
        b,
        LSTM,
        input,
        hx,
        params,
        has_biases=has_biases,
        num_layers=num_layers,
        dropout=dropout,
        train=train,
        bidirectional=bidirectional,
        batch_first=batch_first,
    )


def _declare_layers(name: str, cell: Cell, doc: str) -> OpEntry:
    """Declares layers with one state: their hidden states, and the last ones."""

    def layers(
        b: Build,
        input: Value,
        hx: Value,
        params: Sequence[Value],
        *,
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
    ) -> tuple[Value, ...]:
        return _layers(
            b,
            cell,
            input,
            [hx],
            params,
            has_biases=has_biases,
            num_layers=num_layers,
            dropout=dropout,
            train=train,
            bidirectional=bidirectional,
            batch_first=batch_first,
        )

    layers.__name__, layers.__doc__ = name, doc
    return ATEN.composed(aten=[f"{name}.input"])(layers)


def _declare_cell(name: str, cell: Cell, doc: str) -> OpEntry:
    """Declares one step of a layer with one state."""

    def one(
        b: Build,
        input: Value,
        hx: Value,
        w_ih: Value,
        w_hh: Value,
        b_ih: Value | None = None,
        b_hh: Value | None = None,
    ) -> Value:
        return _one_step(b, cell, input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]

    one.__name__, one.__doc__ = name, doc
    return ATEN.composed(aten=[name])(one)


def _one_step(b: Build, cell: Cell, input: Value, state: State, w: Weights) -> State:
    return _next(b, cell, _from_input(b, cell, input, w), state, w)


@ATEN.composed(aten=["lstm_cell"])
def lstm_cell(
    b: Build,
    input: Value,
    hx: Sequence[Value],
    w_ih: Value,
    w_hh: Value,
    b_ih: Value | None = None,
    b_hh: Value | None = None,
) -> State:
    """One step of long short-term memory: the hidden state and the cell."""
    return _one_step(b, LSTM, input, tuple(hx), Weights(w_ih, w_hh, b_ih, b_hh))


gru = _declare_layers("gru", GRU, "Layers of gated recurrent units: the hidden states, and the last ones.")
rnn_tanh = _declare_layers("rnn_tanh", TANH, "Recurrent layers that end in tanh: the hidden states, and the last ones.")
rnn_relu = _declare_layers("rnn_relu", RELU, "Recurrent layers that end in relu: the hidden states, and the last ones.")
gru_cell = _declare_cell("gru_cell", GRU, "One step of a gated recurrent unit.")
rnn_tanh_cell = _declare_cell("rnn_tanh_cell", TANH, "One recurrent step that ends in tanh.")
rnn_relu_cell = _declare_cell("rnn_relu_cell", RELU, "One recurrent step that ends in relu.")


def _parameters(gates: int, layers: int, directions: int, wide: int, own: int, biases: bool) -> list[tuple[int, ...]]:
    out: list[tuple[int, ...]] = []
    for layer in range(layers):
        for _ in range(directions):
            out += [(gates * own, wide if layer == 0 else own * directions), (gates * own, own)]
            out += [(gates * own,)] * 2 if biases else []
    return out


_FACTS = {"has_biases": True, "num_layers": 1, "dropout": 0.0, "train": False, "bidirectional": False}
for _entry, _gates_ in ((lstm, 4), (gru, 3), (rnn_tanh, 1), (rnn_relu, 1)):
    for _layers_, _both, _biases, _first in ((1, False, True, True), (2, True, True, False), (1, True, False, True)):
        _state = (_layers_ * (1 + _both), 2, 5)
        ATEN.samples(
            _entry,
            Sample(
                (
                    (2, 3, 4) if _first else (3, 2, 4),
                    [_state, _state] if _gates_ == 4 else _state,
                    _parameters(_gates_, _layers_, 1 + _both, 4, 5, _biases),
                ),
                _FACTS | {"num_layers": _layers_, "bidirectional": _both, "has_biases": _biases, "batch_first": _first},
                low=-0.7,
                high=0.7,
            ),
        )
ATEN.samples(
    lstm,
    Sample(
        ((3, 2, 4), [(1, 2, 3), (1, 2, 5)], [(20, 4), (20, 3), (20,), (20,), (3, 5)]), _FACTS | {"batch_first": False}
    ),
    Sample(((3, 4), [(1, 2, 5)] * 2, [(20, 4), (20, 5), (20,), (20,)]), _FACTS | {"batch_first": False}, breaks="C1"),
)
for _entry, _gates_ in ((lstm_cell, 4), (gru_cell, 3), (rnn_tanh_cell, 1), (rnn_relu_cell, 1)):
    _rows = 5 * _gates_
    _hidden: list[tuple[int, int]] | tuple[int, int] = [(3, 5), (3, 5)] if _gates_ == 4 else (3, 5)
    ATEN.samples(
        _entry,
        Sample(((3, 4), _hidden, (_rows, 4), (_rows, 5), (_rows,), (_rows,))),
        Sample(((3, 4), _hidden, (_rows, 4), (_rows, 5))),
    )
