"""Kinds of misbehaviour that the machine reports, and the wording of a report.

Decision: docs/decisions/0051-what-each-level-can-see.md
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import UnknownLoc
from xdsl.ir import Operation

from spyre_mlir.choices import OnFault
from spyre_mlir.dialects.places import source_of
from spyre_mlir.errors import FaultKind, FaultPlace, MachineFault
from spyre_mlir.machine.overflows import Overflow
from spyre_mlir.text.notebook import ShownAsText

Place = FaultPlace
_SHOWN = 12
_LOGGER = logging.getLogger("spyre_mlir.machine")

# After these the operation goes on with what memory holds: bytes nobody wrote read as zeros, and what is computed from
# them counts as never written; of two writers the later core wins. After any other fault the operation is left out,
# and memory stays as it is. An integer result beyond 32 bits keeps its low bits.
GOES_ON = frozenset(
    {
        FaultKind.UNINITIALISED_READ,
        FaultKind.STALE_READ,
        FaultKind.FOREIGN_SLICE,
        FaultKind.UNWRITTEN_OUTPUT,
        FaultKind.DOUBLE_WRITE,
        FaultKind.READ_WRITE_RACE,
        FaultKind.DIVIDED_TABLE,
        FaultKind.SPAN,
        FaultKind.NAN_BORN,
        FaultKind.INT32_OVERFLOW,
    }
)


def fault(
    kind: FaultKind,
    message: str,
    where: Place | Operation,
    *,
    hint: str | None = None,
    core: int | None = None,
    tensor: str | None = None,
    span: tuple[int, int] | tuple[None, None] = (None, None),
) -> MachineFault:
    """Return the exception for a misbehaviour of the program, for the caller to raise or to log.

    Args:
        kind: what happened.
        message: the same, with its numbers.
        where: a place in the memories, or the op that did it.
        hint: what to try.
        core: of an op, the core that did it.
        tensor: of an op, the operand.
        span: of an op, the first byte and one past the last, in every core's scratchpad.
    """
    if isinstance(where, Place):
        return MachineFault(kind, message, where=str(where) or None, hint=hint, place=where)
    source = source_of(where.location)
    unknown = isinstance(where.location, UnknownLoc)
    line = str(source) if source else None if unknown else str(where.location)
    name, level = getattr(where, "function_name", where.name), where.name.rpartition(".")[0]
    place = Place(op=name, tensor=tensor, core=core, low=span[0], high=span[1], level=level, line=line)
    shown = place_of(where) if core is None else f"{place_of(where)}, core {core}"
    return MachineFault(kind, message, where=shown, hint=hint, place=place)


def place_of(op: Operation) -> str:
    """Return the op's name, and its source line if known."""
    return op.name if isinstance(op.location, UnknownLoc) else f"{op.name} {op.location}"


@dataclass(frozen=True)
class Standing:
    """The running file or function.

    Attributes:
        name: of the file or function.
        level: that it is at.
        line: of the model that it comes from.
    """

    name: str
    level: str
    line: str | None = None


@dataclass(repr=False)
class FaultLog(ShownAsText):
    """The faults of one run, and the response to them.

    Args:
        on_fault: ``raise`` stops at the first, ``warn`` says each kind at each place once through `logging`,
            ``collect`` only keeps them.

    Attributes:
        faults: in the order they happened.
        overflows: finite numbers beyond the largest DLFloat16, by op; of what the host sent, by the tensor's name.
        depends: the ops whose results depend on a setting that public sources leave open, by its name.
        standing: what runs now; goes into every fault.
    """

    on_fault: OnFault = "raise"
    faults: list[MachineFault] = field(default_factory=list[MachineFault])
    overflows: dict[str, Overflow] = field(default_factory=dict[str, Overflow])
    depends: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    standing: Standing | None = None
    # Why the byte at an address holds nothing, if it did once.
    why: Callable[[int], str | None] = field(default=lambda _: None, repr=False)
    # Which core of the running operation a fault is of, where all cores ran at once; its part of the bytes.
    settle: Callable[[MachineFault], FaultPlace] = field(default=lambda found: found.place, repr=False)
    _said: set[tuple[str, str | None]] = field(default_factory=set[tuple[str, str | None]])

    def __str__(self) -> str:
        """The lines of `lines`."""
        return "\n".join(self.lines() or ["no faults, no overflows"])

    def meet(self, found: MachineFault) -> None:
        """Handle a fault after which the operation can continue.

        Raises:
            MachineFault: the same, if the run is to stop or if nothing can follow.
        """
        low = found.place.low
        if found.kind == FaultKind.UNINITIALISED_READ.value and low is not None and (text := self.why(low)) is not None:
            found = fault(FaultKind.STALE_READ, text, found.place, hint="use addresses of their own")
        if self.on_fault != "raise" and FaultKind(found.kind) in GOES_ON:
            self.keep(found)
            return
        self._settle(found)
        raise found

    def _settle(self, found: MachineFault) -> None:
        place = found.place
        if place.core is None and place.low is not None and (settled := self.settle(found)) != place:
            found.place, found.where = settled, str(settled)

    def keep(self, found: MachineFault) -> None:
        """Handle a fault that skipped an operation.

        Raises:
            MachineFault: the same, if the run is to stop.
        """
        self._settle(found)
        if self.standing is not None:
            place = found.place
            found.place = replace(place, level=self.standing.level, line=place.line or self.standing.line)
            places = [found.where, self.standing.line]
            found.where = f"{self.standing.name}: " + ", ".join(text for text in places if text is not None)
        self.faults.append(found)
        if self.on_fault == "raise":
            raise found
        if self.on_fault == "warn" and (key := (found.kind, found.where)) not in self._said:
            self._said.add(key)
            _LOGGER.warning("%s", found)

    def overflow(self, op: str, tensor: str, count: int, largest: float) -> None:
        """Record finite numbers beyond the largest DLFloat16, of the running operation."""
        standing = self.standing or Standing("", "")
        found = Overflow(op, tensor, count, largest, standing.name or None, standing.line)
        known = self.overflows.get(op)
        self.overflows[op] = found if known is None else known + found

    def lines(self) -> list[str]:
        """Return the lines of a report about the run: every fault with its count, then overflows."""
        counts: dict[str, int] = {}
        for found in self.faults:
            text = found.message if found.where is None else f"{found.message}; at {found.where}"
            counts[text] = counts.get(text, 0) + 1
        lines = [text if count == 1 else f"{text} ({count} times)" for text, count in counts.items()]
        return lines + [f"overflow: {met}" for met in self.overflows.values()]

    def undecided(self) -> list[str]:
        """Return per setting that public sources leave open the ops that depend on it; the first few of many."""
        lines: list[str] = []
        for setting, ops in sorted(self.depends.items()):
            names = sorted(ops, key=lambda name: (int(name.partition(":")[0]), name))
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            lines.append(f"{setting}: {', '.join(names[:_SHOWN])}{more}")
        return lines
