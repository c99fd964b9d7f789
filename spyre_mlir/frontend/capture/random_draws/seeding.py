"""A model that sets the state of torch's generator while it runs: no graph shows that, so the draws would be others."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.arguments import is_random
from spyre_mlir.frontend.locations import of_model
from spyre_mlir.frontend.torch_private import OpOverload

# Files of functions by which a model may set the state, as `torch.random.fork_rng`.
_BETWEEN = (torch.random.__file__, contextlib.__file__)
_SETTING = ("manual_seed", "seed", "set_rng_state")


@contextmanager
def settings_noted() -> Generator[list[tuple[str, str]]]:
    """Note which functions that set the state of torch's generator are called inside, and where; it stays as it was."""
    import_module("torch._dynamo")  # wraps `manual_seed` when it is imported first, which must not be one of ours
    noted: list[tuple[str, str]] = []
    before, holders = torch.get_rng_state(), (torch, torch.random)
    own = {(holder, name): getattr(holder, name) for holder in holders for name in _SETTING}
    for (holder, name), function in own.items():
        setattr(holder, name, _noting(function, name, noted))
    try:
        yield noted
    finally:
        for (holder, name), function in own.items():
            setattr(holder, name, function)
        if noted:
            torch.set_rng_state(before)


def _noting(function: Callable[..., Any], name: str, noted: list[tuple[str, str]]) -> Callable[..., Any]:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if (place := _called_by_model()) is not None:
            noted.append((name, place))
        return function(*args, **kwargs)

    return call


def _called_by_model() -> str | None:
    """The place at which a model sets the state; None if torch's tracing does, which puts it back."""
    frames = traceback.extract_stack()[:-2]
    while frames and frames[-1].filename in _BETWEEN:
        frames.pop()
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames and of_model(frames[-1].filename) else None


def check_settings(exported: ExportedProgram, noted: list[tuple[str, str]]) -> None:
    """Refuse a program that draws random numbers, if the state of the generator was set while it was traced.

    Raises:
        UnsupportedError: it was.
    """
    if not noted:
        return
    modules = (m for m in exported.graph_module.modules() if isinstance(m, GraphModule))
    nodes = [n for m in modules for n in m.graph.nodes if n.op == "call_function" and isinstance(n.target, OpOverload)]
    if any(is_random(node) for node in nodes):
        name, place = noted[0]
        raise UnsupportedError(
            f"the model sets the state of torch's generator while it runs, by torch.{name}, and draws random numbers",
            where=place,
            hint="seed before the model is called",
        )
