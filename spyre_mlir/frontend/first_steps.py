"""Recurrent networks in a trace: their first steps say what the results look like, however many there are.

Torch runs its decomposition of a network step by step on tensors without elements, which takes tens of seconds for some
hundred steps. In a block of ours a thread runs two steps only. With derivatives every step counts, and runs.

Used, private: `one_layer_rnn` and `one_layer_lstm` of `torch._decomp.decompositions`, which run a layer one way over
steps along dimension 0, and give a new tensor of all hidden states and the last state.

Decision: docs/decisions/0197-loops-over-slices-are-loops-of-the-bundle.md
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from threading import Lock
from typing import Any, cast

import torch
from torch._decomp import decompositions

from spyre_mlir.frontend.torch_private import is_fake

_LAYERS = ("one_layer_rnn", "one_layer_lstm")
_STEPS = 2
_Layer = Callable[..., tuple[torch.Tensor, Any]]

_here = ContextVar("first_steps_traced", default=False)
_lock = Lock()


class _Usual:
    """Torch's own functions, while blocks of ours have others in their place."""

    blocks = 0
    layers: dict[str, _Layer] = {}


@contextmanager
def first_steps_traced() -> Generator[None]:
    """Have recurrent networks run their first steps alone in what this thread traces in the block."""
    module = cast(Any, decompositions)
    with _lock:
        if not _Usual.blocks:
            _Usual.layers = {name: getattr(module, name) for name in _LAYERS}
            for name, layer in _Usual.layers.items():
                setattr(module, name, partial(_first_steps, layer))
        _Usual.blocks += 1
    token = _here.set(True)
    try:
        yield
    finally:
        _here.reset(token)
        with _lock:
            _Usual.blocks -= 1
            if not _Usual.blocks:
                for name, layer in _Usual.layers.items():
                    setattr(module, name, layer)


def _first_steps(layer: _Layer, inp: torch.Tensor, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, Any]:
    """Run a layer; in a block of this thread the first steps of tensors without elements."""
    steps = inp.shape[0]
    traced = _here.get() and is_fake(inp) and not torch.is_grad_enabled()
    if not traced or type(steps) is not int or steps <= _STEPS:
        return layer(inp, *args, **kwargs)
    seen, last = layer(inp[:_STEPS], *args, **kwargs)
    return seen.new_empty((steps, *seen.shape[1:])), last


__all__ = ["first_steps_traced"]
