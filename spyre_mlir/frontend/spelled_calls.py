"""Operators and their arguments as text, in calls that the host makes by name.

Decision: docs/decisions/0144-complex-numbers-are-pairs.md
Decision: docs/decisions/0215-operators-that-write-run-on-copies.md
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, cast

import torch

from spyre_mlir.errors import UnsupportedError

Tensor = torch.Tensor


class RealAt(NamedTuple):
    """A real tensor, by its number among the tensors of a call."""

    number: int


class ComplexAt(NamedTuple):
    """A complex tensor, by the numbers of its parts."""

    re: int
    im: int


def spelled(arguments: Mapping[str, Any]) -> str | None:
    """Return the arguments of a call as a literal of Python; None if one of them is no such value.

    Args:
        arguments: by name: `RealAt`, `ComplexAt`, element types, numbers, text, None, and lists of these.
    """
    try:
        return repr({name: _spelled(value) for name, value in arguments.items()})
    except ValueError:
        return None


def _spelled(value: Any) -> Any:
    match value:
        case RealAt() | ComplexAt():
            return {type(value).__name__: list(value)}
        case torch.dtype():
            return {"dtype": str(value).removeprefix("torch.")}
        case list() | tuple():
            return [_spelled(item) for item in cast("list[Any]", value)]
        case None | bool() | int() | str():
            return value
        case float() | complex():
            return {type(value).__name__: str(value)}  # infinities and NaN have no literal
        case _:
            raise ValueError(f"{value!r} is no argument of a call")


def meant(arguments: str, tensors: Sequence[Tensor]) -> dict[str, Any]:
    """Return the arguments that `spelled` has written, by name, with tensors in their places."""
    return {name: _meant(value, tensors) for name, value in literal_eval(arguments).items()}


def _meant(value: Any, tensors: Sequence[Tensor]) -> Any:
    match value:
        case {"RealAt": [int(number)]}:
            return tensors[number]
        case {"ComplexAt": [int(re), int(im)]}:
            return torch.complex(tensors[re], tensors[im])
        case {"dtype": str(name)}:
            return getattr(torch, name)
        case {"float": str(text)}:
            return float(text)
        case {"complex": str(text)}:
            return complex(text)
        case list():
            return [_meant(item, tensors) for item in cast("list[Any]", value)]
        case _:
            return value


def spelled_operator(operator: str) -> Any:
    """Return an operator by its name as torch spells it, ``aten.linalg_inv.default``.

    Raises:
        UnsupportedError: nothing of this process has registered it.
    """
    try:
        namespace, packet, overload = operator.split(".")
        return getattr(getattr(getattr(torch.ops, namespace), packet), overload)
    except (AttributeError, ValueError) as error:
        raise UnsupportedError(
            f"the host has no operator {operator}", hint="import the module that registers it with torch first"
        ) from error


__all__ = ["ComplexAt", "RealAt", "meant", "spelled", "spelled_operator"]
