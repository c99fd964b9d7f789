"""Functions of torch that look at numbers, as calls of the namespace `host`; None where torch can trace them itself.

Decision: docs/decisions/0167-functions-that-look-at-numbers-are-host-steps.md
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
from typing_extensions import override

from spyre_mlir.frontend.host_operators import HOST

Tensor = torch.Tensor
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
_LSTSQ = cast(Any, torch).return_types.linalg_lstsq
_EIG = cast(Any, torch).return_types.linalg_eig


class _NoneBelowZero(torch.autograd.Function):
    """A check whose derivative is that of what it checks."""

    @staticmethod
    @override
    def forward(input: Tensor, what: str) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return HOST.none_below_zero(input, what)

    @staticmethod
    @override
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    @override
    def backward(ctx: Any, *gradients: Any) -> Any:
        return *gradients, None


class _CtcLoss(torch.autograd.Function):
    """`ctc_loss` of tensors, whose derivative is another step of the host."""

    @staticmethod
    @override
    def forward(*given: Any) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return HOST.ctc_loss(*given)

    @staticmethod
    @override
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, blank, reduction, zero_infinity = inputs
        ctx.save_for_backward(*tensors)
        ctx.options = blank, reduction, zero_infinity

    @staticmethod
    @override
    def backward(ctx: Any, *gradients: Any) -> Any:
        return HOST.ctc_loss_gradient(*gradients, *ctx.saved_tensors, *ctx.options), *[None] * 6


def _is_static(*tensors: Any) -> bool:
    return all(isinstance(extent, int) for tensor in tensors for extent in cast("tuple[object, ...]", tensor.shape))


def narrow(input: Tensor, dim: int, start: Any, length: Any) -> Any:
    """`narrow` whose start is a tensor."""
    if not isinstance(start, torch.Tensor) or not isinstance(length, int):
        return None
    return HOST.narrow(input, dim, start, length)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str | int = "mean",
    zero_infinity: bool = False,
) -> Any:
    """`ctc_loss`, of which torch cannot trace the alignments; lengths are tensors, or numbers of Python."""
    lengths = [torch.as_tensor(given) for given in (input_lengths, target_lengths)]
    if not _is_static(log_probs, targets, *lengths):
        return None
    code = _REDUCTIONS.get(reduction, -1) if isinstance(reduction, str) else reduction
    options = blank, code, zero_infinity
    return cast(Any, _CtcLoss).apply(log_probs, targets, *lengths, *options) if code >= 0 else None


def linalg_lstsq(input: Tensor, b: Tensor, *, rcond: Any = None, driver: str | None = None) -> Any:
    """`torch.linalg.lstsq` of real matrices."""
    if not _is_static(input, b) or input.is_complex() or isinstance(rcond, torch.Tensor):
        return None
    return _LSTSQ(HOST.lstsq(input, b, rcond, driver))


def linalg_eig(input: Tensor) -> Any:
    """Eigenvalues and eigenvectors of a real matrix."""
    if not input.is_floating_point():
        return None
    return _EIG(tuple(map(torch.view_as_complex, HOST.eig(input))))


def linalg_eigvals(input: Tensor) -> Any:
    """Eigenvalues of a real matrix."""
    return torch.view_as_complex(HOST.eigvals(input)) if input.is_floating_point() else None


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Any,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Any:
    """`gaussian_nll_loss` with a tensor of variances, of which torch looks for one below 0."""
    if not isinstance(var, torch.Tensor) or reduction not in _REDUCTIONS:
        return None
    if var.shape != input.shape and input.shape[:-1] == var.shape:
        var = var.unsqueeze(-1)
    elif var.ndim != input.ndim or sum(b for a, b in zip(input.shape, var.shape, strict=True) if a != b) > 1:
        return None  # torch refuses it
    spread = cast(Any, _NoneBelowZero).apply(var, "variances").clamp(min=eps)
    loss = 0.5 * (torch.log(spread) + (input - target) ** 2 / spread)
    loss = loss + 0.5 * math.log(2 * math.pi) if full else loss
    return {"none": lambda: loss, "mean": loss.mean, "sum": loss.sum}[reduction]()


__all__ = ["ctc_loss", "gaussian_nll_loss", "linalg_eig", "linalg_eigvals", "linalg_lstsq", "narrow"]
