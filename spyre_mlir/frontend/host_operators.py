"""Operators of the namespace `host`: functions of torch that no trace without values can follow, as steps of the host.

Torch looks at numbers in them to check arguments, or to find sizes. The trace has a call of such an operator instead,
whose result has a known form; the step itself calls torch, with the numbers of the call.

Decision: docs/decisions/0167-functions-that-look-at-numbers-are-host-steps.md
"""

from __future__ import annotations

import warnings
from ast import literal_eval
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.fx import has_side_effect

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.complex_calls import on_complex
from spyre_mlir.frontend.copied_calls import on_copies
from spyre_mlir.frontend.torch_private import disable_modes
from spyre_mlir.ops.checks import CHECKS, COVERED, HOLDS, PRINTED, SUCCEEDED
from spyre_mlir.ops.native.spelled_calls import ON_COMPLEX, ON_COPIES

Tensor = torch.Tensor
NAMESPACE = "host"
# Drivers that compute residuals only for matrices of full rank, so that data decides a size.
_BY_RANK = ("gelss", "gelsd")
_linalg = cast(Any, torch.linalg)
_MEAN = 1  # torch's number of the reduction
_ctc: Any = cast(Any, torch).ctc_loss


def _narrow(input: Tensor, dim: int, start: Tensor, length: int) -> Tensor:
    return input.narrow(dim, start, length).clone()


def _narrow_shaped(input: Tensor, dim: int, start: Tensor, length: int) -> Tensor:  # noqa: ARG001
    shape = list(input.shape)
    shape[dim] = length
    return input.new_empty(shape)


def _none_below_zero(input: Tensor, what: str) -> Tensor:
    if bool((input < 0).any()):
        raise ValueError(f"{what} must not be below 0")
    return input.clone()


def _place(index: Tensor, size: int) -> Tensor:
    if not -size <= int(index) < size:
        raise IndexError(f"index {int(index)} is out of range for a dimension of {size} entries")
    return torch.where(index < 0, index + size, index)


def _holds(condition: Tensor, message: str) -> Tensor:
    if not bool(condition):
        raise RuntimeError(message)
    return condition.clone()


def _printed(values: list[Tensor], names: list[str], text: str, known: str) -> Tensor:
    """Prints a format with tensors, by their names or numbers in it, and what is known, as Python spells it."""
    given: dict[str, Any] = dict(zip(names, values, strict=True)) | literal_eval(known)
    by_place = sorted((int(name), name) for name in given if name.isdigit())
    named = {name: value for name, value in given.items() if not name.isdigit()}
    print(text.format(*(given[name] for _, name in by_place), **named))  # noqa: T201
    return torch.zeros(())


def _printed_shaped(*_: object) -> Tensor:
    return torch.empty(())


def _succeeded(info: Tensor, operator: str, is_matrix: bool) -> Tensor:
    cast(Any, torch.ops.aten)._linalg_check_errors(info, operator, is_matrix=is_matrix)
    return info.clone()


def _windows_cover(
    window: Tensor,
    frames: int,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    center: bool,
    onesided: bool | None,
    length: int | None,
) -> Tensor:
    """Asks torch for the samples of a spectrum of zeros; a window without elements is none."""
    rows = n_fft if onesided is False else n_fft // 2 + 1
    kind = torch.complex128 if window.dtype is torch.float64 else torch.complex64
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a length beyond the frames, with the call itself
            cast(Any, torch).istft(
                torch.zeros(rows, frames, dtype=kind),
                n_fft,
                hop_length,
                win_length,
                window if window.numel() else None,
                center,
                False,
                onesided,
                length,
            )
    except RuntimeError as error:
        if "window overlap add min" not in str(error):
            raise
        raise RuntimeError(
            f"istft: the windows of {frames} frames leave a sample without weight, n_fft={n_fft}, "
            f"hop_length={hop_length}, center={center}"
        ) from error
    return window.clone()


def _alike(input: Tensor, *_: object) -> Tensor:
    return torch.empty_like(input)


@dataclass(frozen=True)
class _Ctc:
    """What `ctc_loss` is given."""

    log_probs: Tensor
    targets: Tensor
    input_lengths: Tensor
    target_lengths: Tensor
    blank: int
    reduction: int
    zero_infinity: bool

    def loss(self) -> Tensor:
        """Return the loss."""
        lengths = self.input_lengths, self.target_lengths
        given = self.log_probs, self.targets, *lengths, self.blank, self.reduction, self.zero_infinity
        return _ctc(*given).clone()

    def gradient(self, gradient: Tensor) -> Tensor:
        """Return the derivative, by torch's kernels: autograd is not there inside of an operator.

        Args:
            gradient: of the loss.
        """
        aten, batch = cast(Any, torch.ops.aten), self.log_probs
        batch = batch if batch.ndim == 3 else batch.unsqueeze(1)
        lengths: list[list[int]] = [
            cast(Any, given).reshape(-1).tolist() for given in (self.input_lengths, self.target_lengths)
        ]
        losses, alignments = aten._ctc_loss.default(batch, self.targets, *lengths, self.blank, self.zero_infinity)
        each = gradient.expand(losses.shape)
        if self.reduction == _MEAN:
            each = each / self.target_lengths.reshape(-1).clamp(min=1) / len(losses)
        made = aten._ctc_loss_backward.default(
            each.contiguous(), batch, self.targets, *lengths, losses, alignments, self.blank, self.zero_infinity
        )
        return made.reshape(self.log_probs.shape).contiguous()


def _ctc_loss(*given: Any) -> Tensor:
    return _Ctc(*given).loss()


def _ctc_loss_shaped(log_probs: Tensor, *others: Any) -> Tensor:
    *_, reduction, _zero_infinity = others
    return log_probs.new_empty(log_probs.shape[1:2] if not reduction and log_probs.ndim == 3 else ())


def _ctc_gradient(gradient: Tensor, *given: Any) -> Tensor:
    return _Ctc(*given).gradient(gradient)


def _ctc_gradient_shaped(gradient: Tensor, log_probs: Tensor, *_: Any) -> Tensor:  # noqa: ARG001
    return torch.empty_like(log_probs, memory_format=torch.contiguous_format)


def _lstsq(a: Tensor, b: Tensor, rcond: float | None, driver: str | None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    made = _linalg.lstsq(a, b, rcond=rcond, driver=driver)
    return made.solution.clone(), made.residuals.clone(), made.rank.clone(), made.singular_values.clone()


def _lstsq_shaped(a: Tensor, b: Tensor, rcond: float | None, driver: str | None) -> tuple[Tensor, ...]:
    """Matrices of full rank say the shapes of all matrices, except where a driver has residuals for these alone."""
    with disable_modes():
        example = torch.eye(*a.shape[-2:], dtype=a.dtype).expand(a.shape)
        made = _lstsq(example, torch.zeros(b.shape, dtype=b.dtype), rcond, driver)
    shapes: list[list[Any]] = [list(part.shape) for part in made]
    if driver in _BY_RANK and made[1].numel():
        if made[1].ndim > 1:
            raise UnsupportedError(
                f"the rank of its matrices decides how many dimensions the residuals of linalg.lstsq by {driver} have",
                hint="choose another driver: 'gels' for matrices of full rank, else 'gelsy'",
            )
        shapes[1] = [cast(Any, torch.library).get_ctx().new_dynamic_size()]
    return tuple(b.new_empty(shape, dtype=part.dtype) for shape, part in zip(shapes, made, strict=True))


def _eig(a: Tensor) -> tuple[Tensor, Tensor]:
    values, vectors = _linalg.eig(a)
    return torch.view_as_real(values).clone(), torch.view_as_real(vectors).clone()


def _eig_shaped(a: Tensor) -> tuple[Tensor, Tensor]:
    return a.new_empty((*a.shape[:-1], 2)), a.new_empty((*a.shape, 2))


def _eigvals(a: Tensor) -> Tensor:
    return torch.view_as_real(_linalg.eigvals(a)).clone()


def _eigvals_shaped(a: Tensor) -> Tensor:
    return a.new_empty((*a.shape[:-1], 2))


def _name(operator: str) -> str:
    return operator.removeprefix(f"{NAMESPACE}::")


_OPERATORS: dict[str, tuple[Any, Any]] = {
    "narrow(Tensor input, int dim, Tensor start, SymInt length) -> Tensor": (_narrow, _narrow_shaped),
    "none_below_zero(Tensor input, str what) -> Tensor": (_none_below_zero, _alike),
    "place(Tensor index, SymInt size) -> Tensor": (_place, _alike),
    f"{_name(HOLDS)}(Tensor condition, str message) -> Tensor": (_holds, _alike),
    f"{_name(PRINTED)}(Tensor[] values, str[] names, str text, str known) -> Tensor": (_printed, _printed_shaped),
    f"{_name(SUCCEEDED)}(Tensor info, str operator, bool is_matrix) -> Tensor": (_succeeded, _alike),
    f"{_name(COVERED)}(Tensor window, SymInt frames, int n_fft, int? hop_length, int? win_length, bool center, "
    "bool? onesided, SymInt? length) -> Tensor": (_windows_cover, _alike),
    "ctc_loss(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int blank, "
    "int reduction, bool zero_infinity) -> Tensor": (_ctc_loss, _ctc_loss_shaped),
    "ctc_loss_gradient(Tensor gradient, Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, "
    "int blank, int reduction, bool zero_infinity) -> Tensor": (_ctc_gradient, _ctc_gradient_shaped),
    "lstsq(Tensor a, Tensor b, float? rcond, str? driver) -> (Tensor, Tensor, Tensor, Tensor)": (_lstsq, _lstsq_shaped),
    "eig(Tensor a) -> (Tensor, Tensor)": (_eig, _eig_shaped),
    "eigvals(Tensor a) -> Tensor": (_eigvals, _eigvals_shaped),
    f"{_name(ON_COMPLEX)}(Tensor[] tensors, str operator, str arguments) -> Tensor[]": (on_complex, on_complex),
    f"{_name(ON_COPIES)}(Tensor[] tensors, str operator, str arguments) -> Tensor[]": (on_copies, on_copies),
}


def _define() -> Any:
    library = cast(Any, torch.library).Library(NAMESPACE, "FRAGMENT")
    for signature, (meaning, shaped) in _OPERATORS.items():
        name = signature.partition("(")[0]
        library.define(signature)
        library.impl(name, meaning, "CompositeExplicitAutograd")  # a print may read no tensor
        cast(Any, torch.library).register_fake(f"{NAMESPACE}::{name}", shaped, lib=library)
    return library


LIBRARY = _define()
HOST: Any = cast(Any, torch.ops).host
for _check in CHECKS:
    has_side_effect(getattr(HOST, _name(_check)).default)
