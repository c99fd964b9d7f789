"""Draws of graphs that torch has differentiated, which no longer say in which order of memory eager draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.random_draws.writer import ORDER, in_row_major_order
from spyre_mlir.frontend.torch_private import Operator

_ATEN = torch.ops.aten
# What fillings in place become: by itself it draws in row-major order, they draw in that of memory.
_AMBIGUOUS: tuple[Operator, ...] = (_ATEN.bernoulli.p,)


def refusals_out_of_order() -> dict[Operator, Callable[..., Any]]:
    """Return a table of decompositions that refuse to fill what is not in row-major order, and decompose nothing."""
    return {operator: _refusing(operator) for operator in _AMBIGUOUS}


def _is_expanded(x: torch.Tensor) -> bool:
    """Return whether elements share memory: nothing fills them in place, so a draw of this form is in row-major order.

    Dropout inside a derivative draws so.
    """
    return any(type(step) is int and step == 0 for step in x.stride())


def _refusing(operator: Operator) -> Callable[..., Any]:
    def refuse(x: torch.Tensor, *_: Any, **__: Any) -> Any:
        if not in_row_major_order(x) and not _is_expanded(x):
            raise UnsupportedError(f"{operator} draws in the order of a memory that is not row-major", hint=ORDER)
        return NotImplemented

    return refuse
