"""Recurrent networks with dropout between their layers: a call per layer, and a mask between two.

What AOTAutograd decomposes a network into leaves the dropout out, so in training a mode makes the calls of layers.
"""

from __future__ import annotations

import operator
from typing import Any, cast

import torch
from torch.fx import Node
from torch.overrides import TorchFunctionMode

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.arguments import bind
from spyre_mlir.frontend.capture.call_writer import value_of
from spyre_mlir.frontend.capture.random_draws.writer import DrawWriter
from spyre_mlir.frontend.locations import line_that_runs
from spyre_mlir.frontend.torch_private import Operator

_ATEN = torch.ops.aten
_FUNCTIONS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
# Of networks on padded sequences; those on packed ones begin with `data` and `batch_sizes`.
_NAMES = ("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
NETWORKS = (_ATEN.lstm.input, _ATEN.gru.input, _ATEN.rnn_tanh.input, _ATEN.rnn_relu.input)


def by_layers(node: Node, write: DrawWriter) -> list[Node]:
    """Write a network layer by layer, with what torch drops of the steps between them; return its results."""
    given: dict[str, Any] = {name: argument.value for name, argument in bind(node).items()}
    x: Node = write(_ATEN.transpose.int, given["input"], 0, 1) if given["batch_first"] else given["input"]
    several = isinstance(given["hx"], (list, tuple))
    states = cast("list[Node]", list(given["hx"]) if several else [given["hx"]])
    layers, directions = given["num_layers"], 2 if given["bidirectional"] else 1
    weights = len(given["params"]) // layers
    last: list[list[Node]] = [[] for _ in states]
    for layer in range(layers):
        if layer:
            x = write(_ATEN.mul.Tensor, x, _mask(x, given["dropout"], write))
        start, end = layer * directions, (layer + 1) * directions
        first = [write(_ATEN.slice.Tensor, state, 0, start, end) for state in states]
        own = given["params"][layer * weights : (layer + 1) * weights]
        rest = (given["has_biases"], 1, 0.0, given["train"], given["bidirectional"], False)
        made = write(cast(Operator, node.target), x, first if several else first[0], own, *rest)
        x, *ends = (write(cast(Any, operator.getitem), made, number) for number in range(1 + len(states)))
        for kept, end_ in zip(last, ends, strict=True):
            kept.append(end_)
    ends = [write(_ATEN.cat.default, kept, 0) for kept in last]
    return [write(_ATEN.transpose.int, x, 0, 1) if given["batch_first"] else x, *ends]


def _mask(x: Node, p: float, write: DrawWriter) -> Node:
    """What dropout multiplies the steps of a layer by; a layer's steps are new memory, in row-major order."""
    if p == 1:  # torch draws nothing
        return write(_ATEN.zeros.default, [], dtype=value_of(x).dtype)
    return write(_ATEN.div.Scalar, write.draw("bernoulli", x, 1.0 - p, size=value_of(x).shape), 1.0 - p)


class LayersApart(TorchFunctionMode):
    """Calls networks that drop between their layers layer by layer, in a trace of AOTAutograd.

    Raises:
        UnsupportedError: one takes packed sequences.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Calls a function of torch, or a network by layers."""
        if getattr(func, "__name__", "") in _FUNCTIONS and kwargs and set(kwargs) == set(_NAMES[len(args) :]):
            args, kwargs = (*args, *(kwargs[name] for name in _NAMES[len(args) :])), {}
        if getattr(func, "__name__", "") not in _FUNCTIONS or kwargs or len(args) != len(_NAMES):
            return func(*args, **(kwargs or {}))
        padded = isinstance(args[3], bool)  # else this is the list of parameters
        layers, dropout, train = args[4:7] if padded else args[5:8]
        if not train or not dropout or layers == 1:
            return func(*args)
        if not padded:
            raise UnsupportedError(
                f"torch.{func.__name__} takes a packed sequence, and drops between its layers",
                where=line_that_runs(),
                hint="give the layer padded sequences, and mask what is behind their ends",
            )
        return _called_by_layers(func, *args)


def _called_by_layers(
    func: Any,
    x: torch.Tensor,
    states: Any,
    params: Any,
    has_biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, ...]:
    x = x.transpose(0, 1) if batch_first else x
    several, directions = isinstance(states, (list, tuple)), 2 if bidirectional else 1
    before = cast("list[torch.Tensor]", list(states) if several else [states])
    weights, last = len(params) // layers, list[list[torch.Tensor]]()
    for layer in range(layers):
        if layer:
            x = torch.dropout(x, dropout, train)
        first = [state[layer * directions : (layer + 1) * directions] for state in before]
        own = params[layer * weights : (layer + 1) * weights]
        x, *ends = func(x, first if several else first[0], own, has_biases, 1, 0.0, train, bidirectional, False)
        last.append(ends)
    made = [torch.cat(kept) for kept in zip(*last, strict=True)]
    return (x.transpose(0, 1) if batch_first else x, *made)
