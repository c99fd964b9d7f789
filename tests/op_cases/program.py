"""What a template makes of a case: a function of tensors, its inputs, and how its results are judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from tests.op_cases.cases import Case

Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Program:
    """A function and its inputs.

    Attributes:
        call: what is compiled.
        inputs: its tensors.
        sized: gives, from the inputs, numbers as large as what the results are sums of; errors of a sum are in units
            of those, for the sum itself may be near zero. None: the results themselves.
        chosen: replaces results that are indices by what they select, from inputs and results.
        wide: whether torch computes what is expected in double precision; not where dtypes are the matter.
        peak: whether errors are in units of the largest element of a result, as for what has a mean subtracted.
    """

    call: Callable[..., Any]
    inputs: Tensors
    sized: Callable[..., Any] | None = None
    chosen: Callable[[Tensors, Sequence[torch.Tensor]], list[torch.Tensor]] | None = None
    wide: bool = True
    peak: bool = False


class NotAProgramError(Exception):
    """A case whose outcome no program of tensors can hold; the message says why."""


Template = Callable[[Case, list[Any]], Program]
TEMPLATES: dict[str, Template] = {}


def template(*names: str) -> Callable[[Template], Template]:
    """Says which templates of the file a function stands for."""

    def add(function: Template) -> Template:
        for name in names:
            TEMPLATES[name] = function
        return function

    return add


def tensors_of(arguments: Sequence[Any]) -> Tensors:
    """The tensors among the arguments."""
    return tuple(a for a in arguments if isinstance(a, torch.Tensor))


def apart(arguments: Sequence[Any]) -> tuple[Tensors, list[Any]]:
    """The tensors, and everything else."""
    return tensors_of(arguments), [a for a in arguments if not isinstance(a, torch.Tensor)]
