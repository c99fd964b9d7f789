"""The model behind a program, with other tensors: what comparisons with torch run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, cast

import torch
from torch.export import ExportedProgram

from spyre_mlir.frontend.process_groups import groups_to_share
from spyre_mlir.frontend.program.complex_tensors import as_complex
from spyre_mlir.frontend.torch_private import holders

log = logging.getLogger(__name__)

Tensors = Mapping[str, torch.Tensor]
Model = Callable[..., object]


def bound_model(model: Model, tensors: Tensors, ties: Mapping[str, str]) -> Model:
    """Return a model with tensors in the places of those it has; no tensor is copied, and the model stays as it is.

    A model that Python cannot copy is returned as it is.

    Args:
        model: a module or an exported program.
        tensors: the new values, by name.
        ties: further names, to those under which the values are given.
    """
    known = {**tensors, **{name: tensors[first] for name, first in ties.items() if first in tensors}}
    if isinstance(model, ExportedProgram):
        return cast(Model, _bound_program(model, known))
    return _bound_module(model, known) if isinstance(model, torch.nn.Module) else model


def _bound_module(model: torch.nn.Module, known: Tensors) -> torch.nn.Module:
    named = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    # What the copy finds here it takes as it is.
    memo: dict[int, Any] = {id(t): t for holder in holders(model) for t in holder.values() if t is not None}
    memo |= groups_to_share()
    for name, old in named:
        if name in known:
            memo[id(old)] = _like(old, known[name])
    try:
        return deepcopy(model, memo)
    except (TypeError, RuntimeError) as error:
        log.debug("%s cannot be copied, and is not compared with: %s", type(model).__name__, error)
        return model


def _like(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    new = as_complex(new) if old.is_complex() else new
    return torch.nn.Parameter(new, False) if isinstance(old, torch.nn.Parameter) else new


def _bound_program(program: ExportedProgram, known: Tensors) -> ExportedProgram:
    constants = {n: _like(cast(Any, old), known[n]) if n in known else old for n, old in program.constants.items()}
    state = {name: _like(old, known[name]) if name in known else old for name, old in program.state_dict.items()}
    return ExportedProgram(
        root=program.graph_module,
        graph=program.graph,
        graph_signature=program.graph_signature,
        state_dict=state,
        range_constraints=cast(Any, program).range_constraints,
        module_call_graph=program.module_call_graph,
        example_inputs=program.example_inputs,
        constants=constants,
        verifiers=program.verifiers,  # what torch exported may write in place
    )
