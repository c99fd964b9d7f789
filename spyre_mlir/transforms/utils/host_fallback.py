"""Operations that the host runs because the device cannot: search, listing, warnings, refusal."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64

from spyre_mlir.choices import HostFallback
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import ORIGIN
from spyre_mlir.dialects.ir.call_effects import exchanges_in
from spyre_mlir.dialects.ir.modules import ops_in
from spyre_mlir.dialects.places import source_of
from spyre_mlir.dialects.spyre.host import SAYS_WHERE, HostOp
from spyre_mlir.errors import LoweringError, UnsupportedError, frames_of_ours
from spyre_mlir.transforms.utils.host_support import mark

ResultT = TypeVar("ResultT")
_PLACES_SHOWN = 3


class HostStepWarning(UserWarning):
    """Parts of a program run on the host, because the device cannot run them."""


@dataclass(frozen=True)
class HostStep:
    """One operator that the host runs because the device cannot.

    Attributes:
        op: the operator with its namespace, e.g. ``aten.topk``.
        reason: why the device cannot.
        place: its line and module in the model; empty if they are not known.
    """

    op: str
    reason: str
    place: str


def host_steps_of(module: ModuleOp) -> tuple[HostStep, ...]:
    """Return the host steps of a module below the aten level.

    Collectives are not among them, which no device alone could run, nor steps that say where kernels read, which are
    there because that is quicker, nor steps that only follow other host steps.
    """
    return tuple(
        HostStep(op.callee.data, op.reason.data, str(source_of(op.location) or ""))
        for op in ops_in(module)
        if isinstance(op, HostOp) and op.reason is not None and op.reason.data != SAYS_WHERE and not exchanges_in(op)
    )


def listed(steps: Sequence[HostStep]) -> str:
    """Return one line per operator and reason: the count, and the first locations."""
    counts = Counter((step.op, step.reason) for step in steps)
    lines: list[str] = []
    for (op, reason), count in counts.items():
        places = list(dict.fromkeys(s.place for s in steps if (s.op, s.reason) == (op, reason) and s.place))
        more = f", and {len(places) - _PLACES_SHOWN} more" if len(places) > _PLACES_SHOWN else ""
        where = f"\n      {', '.join(places[:_PLACES_SHOWN])}{more}" if places else ""
        lines.append(f"  {count} x {op}: {reason}{where}")
    return "\n".join(lines)


def tell_host_steps(steps: Sequence[HostStep], fallback: HostFallback) -> None:
    """Warn about host steps, or refuse them.

    Raises:
        UnsupportedError: there are some, and they are not wanted.
    """
    if not steps or fallback == "allow":
        return
    if fallback == "error":
        raise UnsupportedError(
            f"{_count(steps)} of this program would run on the host\n{listed(steps)}",
            where=steps[0].place or None,
            hint="allow host steps (host_fallback='warn'), or write these operations with others",
        )
    warnings.warn(warning_text(steps), HostStepWarning, stacklevel=frames_of_ours())


def warning_text(steps: Sequence[HostStep]) -> str:
    """Return the warning about host steps."""
    return f"{_count(steps)} of this program will run on the host\n{listed(steps)}"


def _count(steps: Sequence[HostStep]) -> str:
    return "a step" if len(steps) == 1 else f"{len(steps)} steps"


def lower_with_more_on_host(
    module: ModuleOp, lower: Callable[[ModuleOp], ResultT], refused: UnsupportedError | LoweringError
) -> ResultT:
    """Lower a program with as much on the device as possible: an op that cannot be lowered becomes a host step.

    The ops are numbered, and what they become carries the numbers, so that an error says which ops it is about. A pass
    tries all of its ops before it gives up, so the program is lowered twice for every pass that refuses some, however
    many these are.

    Args:
        module: at the aten level; stays as it is.
        lower: takes a module down, or raises.
        refused: what it raised for this module.

    Raises:
        UnsupportedError: what cannot be lowered comes from no op.
        LoweringError: as above.
    """
    reasons: dict[int, str] = {}
    while True:
        try:
            lower(_prepared(module, reasons, numbered=True))
        except (UnsupportedError, LoweringError) as error:
            refused = error
        found = [e for e in (refused, *refused.others) if e.origin is not None and e.origin not in reasons]
        if not found:
            raise refused
        reasons |= {e.origin: e.message for e in found if e.origin is not None}
        try:
            return lower(_prepared(module, reasons, numbered=False))
        except (UnsupportedError, LoweringError) as error:
            refused = error


def _prepared(module: ModuleOp, reasons: dict[int, str], *, numbered: bool) -> ModuleOp:
    """A copy in which some ops are marked, by their number, and all bear their numbers if that is asked for."""
    copy = module.clone()
    for number, op in enumerate(op for op in copy.walk() if isinstance(op, AtenOp)):
        if numbered:
            op.attributes[ORIGIN] = IntegerAttr(number, i64)
        if number in reasons:
            mark(op, reasons[number])
    return copy


__all__ = [
    "HostFallback",
    "HostStep",
    "HostStepWarning",
    "host_steps_of",
    "listed",
    "lower_with_more_on_host",
    "tell_host_steps",
    "warning_text",
]
