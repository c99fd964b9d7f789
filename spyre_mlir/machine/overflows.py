"""Numbers beyond DLFloat16: records of a run, and the message at its end.

Decision: docs/decisions/0102-overflow-is-said.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from spyre_mlir.choices import OnOverflow
from spyre_mlir.errors import OverflowFault
from spyre_mlir.hw.formats import DL16_LARGEST
from spyre_mlir.sizes import counted

PAGE = "docs/dl16-exceptions.md"
_SHOWN = 5


class DL16OverflowWarning(UserWarning):
    """Finite numbers of a call exceed the largest DLFloat16, and later operations computed with replacements."""


@dataclass(frozen=True)
class Overflow:
    """Finite numbers beyond the largest DLFloat16, of one operation or of one tensor that the host sent.

    Attributes:
        op: the operation, as ``2:mul``; ``to_device`` and the tensor's name for what was sent.
        tensor: the operand that holds them, as ``Tensor2``, or the name of what was sent.
        count: how many there are.
        largest: the largest magnitude among them, before it was rounded.
        file: the file of the operation.
        line: the line of the model it comes from.
    """

    op: str
    tensor: str
    count: int
    largest: float
    file: str | None = None
    line: str | None = None

    @property
    def function(self) -> str:
        """The hardware function; empty for a tensor that the host sent."""
        return self.op.partition(":")[2]

    def __add__(self, other: Overflow) -> Overflow:
        """Of both, at the place of the first."""
        return replace(self, count=self.count + other.count, largest=max(self.largest, other.largest))

    def __str__(self) -> str:
        beyond = f"{'is' if self.count == 1 else 'are'} beyond DLFloat16, the largest {self.largest:.6g}"
        if not self.function:
            return f"{counted(self.count, 'number')} of {self.tensor} {beyond}"
        places = ", ".join(place for place in (self.line, self.file, self.tensor) if place is not None)
        return f"{counted(self.count, 'result')} of {self.op} {beyond}; at {places}"


def overflow_text(overflows: Mapping[str, Overflow], curable: Callable[[Overflow], bool]) -> str:
    """Return the message about the overflows of a run: locations, replacements, remedies.

    Args:
        overflows: there is at least one.
        curable: whether an overflow goes away where float32 is kept.
    """
    found = list(overflows.values())
    lines = [f"numbers went beyond {DL16_LARGEST:,.0f}, the largest DLFloat16, and others took their place"]
    lines += [f"  {overflow}" for overflow in found[:_SHOWN]]
    lines += [f"  and in {len(found) - _SHOWN} more operations"] if len(found) > _SHOWN else []
    helped = sum(map(curable, found))
    some = "" if helped == len(found) else f", which helps {helped} of {len(found)} of them"
    remedy = f"try keep_float32=True{some}; " if helped else ""
    return "\n".join([*lines, f"results that depend on them are wrong; {remedy}see {PAGE}"])


def tell_overflows(
    overflows: Mapping[str, Overflow],
    policy: OnOverflow,
    *,
    curable: Callable[[Overflow], bool],
    tell: Callable[[str], object],
) -> None:
    """Report the overflows of a run, or refuse its results, by policy.

    Args:
        overflows: of the run, by operation.
        policy: what to do.
        curable: whether an overflow goes away where float32 is kept.
        tell: takes the text of the warning.

    Raises:
        OverflowFault: there are some, and the policy is to raise.
    """
    if not overflows or policy == "ignore":
        return
    text = overflow_text(overflows, curable)
    if policy == "raise":
        first = next(iter(overflows.values()))
        raise OverflowFault(text, where=first.line or first.op, hint='scale what grows, or pass on_overflow="warn"')
    tell(text)
