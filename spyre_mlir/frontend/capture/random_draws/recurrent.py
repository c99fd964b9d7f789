"""Recurrent networks with dropout between their layers: a call per layer, and a mask between two."""

from __future__ import annotations

import operator
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.frontend.arguments import bind
from spyre_mlir.frontend.capture.call_writer import value_of
from spyre_mlir.frontend.capture.random_draws.writer import DrawWriter
from spyre_mlir.frontend.torch_private import Operator

_ATEN = torch.ops.aten
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
