"""Recurrent networks in a trace run their first steps alone, in blocks of ours and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from threading import Thread
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._decomp import decompositions
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensorMode

from spyre_mlir.frontend.first_steps import first_steps_traced

STEPS = 40


def shown(kind: str, block: Callable[[], Any] = first_steps_traced, *, grad: bool = False, **options: Any) -> Any:
    """The results of a layer on tensors without elements, and how many steps torch ran."""
    seen, cells = [0], {name: getattr(decompositions, name) for name in ("gru_cell", "lstm_cell")}

    def counted(name: str) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            seen[0] += 1
            return cells[name](*args, **kwargs)

        return run

    with (
        pytest.MonkeyPatch.context() as patch,
        FakeTensorMode(),
        torch.set_grad_enabled(grad),
        enable_python_dispatcher(),
    ):
        for name in cells:
            patch.setattr(decompositions, name, counted(name))
        model, batch_first = getattr(nn, kind)(4, 6, **options), options.get("batch_first")
        with block():
            out = model(torch.empty(2, STEPS, 4) if batch_first else torch.empty(STEPS, 2, 4))
    flat: list[Tensor] = torch.utils._pytree.tree_leaves(out)
    return [(tuple(t.shape), t.stride()) for t in flat], seen[0]


@pytest.mark.parametrize(
    ("kind", "options"),
    [("GRU", {}), ("GRU", {"batch_first": True, "bidirectional": True}), ("LSTM", {"proj_size": 2})],
    ids=str,
)
def test_results_lie_as_those_of_all_steps(kind: str, options: dict[str, Any]) -> None:
    whole, all_steps = shown(kind, nullcontext, **options)
    first, steps = shown(kind, **options)
    assert first == whole
    assert steps <= 4 < all_steps


def test_derivatives_take_every_step() -> None:
    assert shown("GRU", grad=True)[1] == STEPS


def test_torch_has_its_functions_back() -> None:
    before = decompositions.one_layer_rnn
    with first_steps_traced():
        with first_steps_traced():
            assert decompositions.one_layer_rnn is not before
        assert decompositions.one_layer_rnn is not before
        assert shown_elsewhere() == STEPS
    assert decompositions.one_layer_rnn is before


def shown_elsewhere() -> int:
    """Steps that torch runs in another thread, which traces nothing of ours."""
    found = list[int]()
    thread = Thread(target=lambda: found.append(shown("GRU", nullcontext)[1]))
    thread.start()
    thread.join()
    return found[0]
