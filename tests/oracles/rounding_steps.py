"""Elements of a step that lie so near its boundary that float32 rounding decides them, by torch alone.

A function runs in float32 and in double precision. For every step that torch dispatches on the way, the distance of its
input, in double precision, to the nearest boundary is measured in units in the last place of float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

ATEN = torch.ops.aten
ULPS = 4

_WHOLE = (ATEN.floor.default, ATEN.ceil.default, ATEN.trunc.default)
_COMPARISONS = tuple(
    overload
    for name in ("eq", "ne", "lt", "le", "gt", "ge")
    for overload in (getattr(ATEN, name).Tensor, getattr(ATEN, name).Scalar)
)


def unit(x: torch.Tensor) -> torch.Tensor:
    """One unit in the last place of float32 at a double."""
    return torch.nextafter(x.abs().float(), torch.tensor(torch.inf)).double() - x.abs().float().double()


@dataclass(frozen=True)
class Step:
    """One step: its operator, and which elements rounding may decide."""

    name: str
    near: torch.Tensor


class _Recorder(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.steps: list[Step] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = dict(kwargs or {})
        distance = _distance(func, args, named)
        if distance is not None:
            self.steps.append(Step(str(func), distance))
        return func(*args, **named)


def _distance(func: Any, args: tuple[Any, ...], named: dict[str, Any]) -> torch.Tensor | None:
    x = args[0] if args else None
    if not isinstance(x, torch.Tensor) or not x.is_floating_point():
        return None
    if func in _WHOLE or (func is ATEN._to_copy.default and not named["dtype"].is_floating_point):
        return (x - x.round()).abs() <= ULPS * unit(x)
    if func is ATEN.round.default:
        return (x - x.floor() - 0.5).abs() <= ULPS * unit(x)
    if func in _COMPARISONS:
        other = (
            torch.as_tensor(args[1], dtype=torch.float32).double() if not isinstance(args[1], torch.Tensor) else args[1]
        )
        return (x - other).abs() <= ULPS * torch.maximum(unit(x), unit(other).expand_as(x - other))
    if func is ATEN.argmax.default:
        first, second = x.topk(2, dim=args[1]).values.unbind(args[1])
        return first - second <= ULPS * unit(first)
    return None


def steps_of(function: Callable[..., Any], *inputs: torch.Tensor) -> list[Step]:
    """The steps of a function on inputs, in the order in which they run."""
    recorder = _Recorder()
    with torch.no_grad(), recorder:
        function(*(x.double() if x.is_floating_point() else x for x in inputs))
    return recorder.steps
