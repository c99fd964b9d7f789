"""Calls on complex numbers that the host makes, from real and imaginary parts.

Decision: docs/decisions/0144-complex-numbers-are-pairs.md
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


def meant(value: Any, tensors: Sequence[Tensor]) -> Any:
    """Return an argument that `spelled` has written, with tensors in their places."""
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
            return [meant(item, tensors) for item in cast("list[Any]", value)]
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


def on_complex(tensors: list[Tensor], operator: str, arguments: str) -> list[Tensor]:
    """Call an operator of torch.

    Args:
        tensors: real tensors, and parts of complex ones.
        operator: as torch spells it, ``aten.linalg_inv.default``.
        arguments: as `spelled` gives them.

    Returns:
        its tensors, two for each that is complex.
    """
    given = {name: meant(value, tensors) for name, value in literal_eval(arguments).items()}
    made = spelled_operator(operator)(**given)
    several: Sequence[Tensor] = [made] if isinstance(made, torch.Tensor) else made
    return [part for value in several for part in _parts(value)]


def _parts(value: Tensor) -> list[Tensor]:
    """A real tensor, or both parts of a complex one, each with memory of its own."""
    if not value.is_complex():
        return [value.clone(memory_format=torch.contiguous_format)]
    whole = torch.view_as_real(value.resolve_conj())
    return [whole.select(-1, part).clone(memory_format=torch.contiguous_format) for part in (0, 1)]


__all__ = ["ComplexAt", "RealAt", "meant", "on_complex", "spelled", "spelled_operator"]
