"""Stable order of equal elements wherever torch leaves it open: in the reference, and in host steps.

torch says nothing about which of several equal elements an ordering names first, and its choice depends on the length
and the processor. An order that can be foretold is one of those it may give, and the one that the op table gives.

Decision: docs/decisions/0084-equal-elements-keep-their-order.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from typing_extensions import override

from spyre_mlir.frontend.reference.operator_mode import OperatorMode
from spyre_mlir.frontend.torch_private import Operator

aten = torch.ops.aten
Pair = tuple[torch.Tensor, torch.Tensor]


class EqualsInOrder(OperatorMode):
    """Torch mode that makes orderings stable: `sort`, `topk` and `kthvalue`, and the indices of `median` and `mode`."""

    @override
    def run(self, func: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Runs one operator, or what stands for it."""
        return _RULES.get(func, func)(*args, **kwargs)


def _sort(x: torch.Tensor, dim: int = -1, descending: bool = False) -> Pair:
    return aten.sort.stable(x, stable=True, dim=dim, descending=descending)


def _sort_said(
    x: torch.Tensor,
    *,
    dim: int = -1,
    descending: bool = False,
    **_: bool | None,  # `stable`: every sort here is
) -> Pair:
    return _sort(x, dim, descending)


def _topk(x: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Pair:
    if not x.dim():
        return aten.topk.default(x, k, dim, largest, sorted)
    values, places = _sort(x, dim, largest)
    # Not the parts themselves: models call `view` on what `topk` returns, which torch lays out densely.
    return values.narrow(dim, 0, k).contiguous(), places.narrow(dim, 0, k).contiguous()


def _kthvalue(x: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Pair:
    values, places = aten.kthvalue.default(x, k, dim, keepdim)
    return values, _of_rank(x, k - 1, dim, keepdim) if x.dim() else places


def _median(x: torch.Tensor, dim: int, keepdim: bool = False) -> Pair:
    values, places = aten.median.dim(x, dim, keepdim)
    if not x.dim():
        return values, places
    # What is not a number is the median wherever there is any, and torch names the first.
    return values, torch.where(values.isnan(), places, _of_rank(x, (x.shape[dim] - 1) // 2, dim, keepdim))


def _of_rank(x: torch.Tensor, rank: int, dim: int, keepdim: bool) -> torch.Tensor:
    """Return the index of the element of a given rank."""
    places = _sort(x, dim)[1]
    return (places.narrow(dim, rank, 1) if keepdim else places.select(dim, rank)).contiguous()


def _mode(x: torch.Tensor, dim: int = -1, keepdim: bool = False) -> Pair:
    """As torch, with the last place of the value found."""
    values, places = aten.mode.default(x, dim, True)
    if x.dim():
        line = torch.arange(x.shape[dim]).reshape(-1, *(1,) * (x.dim() - dim % x.dim() - 1))
        last = torch.where(x == values, line, -1).amax(dim, keepdim=True)
        places = torch.where(last < 0, places, last)
    return (values, places) if keepdim or not x.dim() else (values.squeeze(dim), places.squeeze(dim))


_RULES: dict[Operator, Callable[..., Pair]] = {
    aten.sort.default: _sort,
    aten.sort.stable: _sort_said,
    aten.topk.default: _topk,
    aten.kthvalue.default: _kthvalue,
    aten.median.dim: _median,
    aten.mode.default: _mode,
}
