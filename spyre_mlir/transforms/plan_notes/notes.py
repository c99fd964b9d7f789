"""Notes of loops: at a function the loops that its kernels run in, at each kernel its loop and how it runs there.

``spyre.loops = [{trips = [4, 2], us = 12.5 : f64, alone_us = 20.1 : f64}]`` at the function: a loop of 4 trips with one
of 2 inside, the predicted time, and that of the kernels without it. Unequal blocks are ``blocks = [[4, 8], [1, 3]]``: 4
trips of 8 pieces, then one of 3; in ``[1, 3, 10]`` ten cores have the same pieces of a weight, each for a tenth of the
rows. ``spyre.plan = {loop = 0, over = ["m"], runs = [{division = #spyre.division<m over 32,
n>, place = "lx"}]}`` at a kernel: loop number 0 goes over its loop m, and the kernel in it is divided so and writes to
the scratchpads. A kernel may run several times, as in two loops or around one; without ``runs`` that is left open.
``spyre.us = 1.75 : f64`` is the predicted time of a kernel in no loop.

Decision: docs/decisions/0198-a-plan-is-notes-and-then-loops.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FloatAttr, IntegerAttr, ModuleOp, StringAttr, f64, i64
from xdsl.ir import Attribute, Operation

from spyre_mlir.dialects.places import placed
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.attributes import DivisionAttr
from spyre_mlir.dialects.spyre.hints import PLACES
from spyre_mlir.errors import InputError
from spyre_mlir.planning.trips import TripSpan

LOOPS = "spyre.loops"
PLAN = "spyre.plan"
TIME = "spyre.us"  # predicted, of a kernel in no loop
_LOOP_FORM = "for example spyre.loops = [{trips = [4, 2]}]"
_KERNEL_FORM = 'for example spyre.plan = {loop = 0, over = ["m"], runs = [{division = #spyre.division<m over 32, n>}]}'
_DIGITS = 4  # of times


class PlanError(InputError):
    """A note of a plan that cannot be followed."""


@dataclass(frozen=True)
class LoopNote:
    """Loops around kernels, as a function notes them.

    Attributes:
        spans: the blocks that the loops go through, one loop after the other.
        inner: trips of a loop inside; 1 for none.
        us: predicted time; None if it is not said.
        alone_us: predicted time of the kernels without loops; None if it is not said.
        why: the reason for the loops, if it is not that time.
    """

    spans: tuple[TripSpan, ...]
    inner: int = 1
    us: float | None = None
    alone_us: float | None = None
    why: str = ""

    @property
    def attribute(self) -> DictionaryAttr:
        """The attribute that says it."""
        found: dict[str, Attribute] = {}
        if self.spans == (TripSpan.of_all(self.spans[0].trips),):
            found["trips"] = _numbers([self.spans[0].trips, *([self.inner] if self.inner > 1 else [])])
        else:
            found["blocks"] = ArrayAttr([_numbers(_block(span)) for span in self.spans])
        found |= {name: _time(us) for name, us in (("us", self.us), ("alone_us", self.alone_us)) if us is not None}
        return DictionaryAttr(found | ({"why": StringAttr(self.why)} if self.why else {}))


@dataclass(frozen=True)
class RunNote:
    """How a kernel runs in a loop, or around one.

    Attributes:
        splits: cores by loop, the loop that counts fastest first.
        place: of its result, if a trip has a buffer for it; empty if that is left open.
        us: predicted time of a run; None if it is not said.
    """

    splits: Mapping[str, int]
    place: str = ""
    us: float | None = None

    @property
    def attribute(self) -> DictionaryAttr:
        """The attribute that says it."""
        found: dict[str, Attribute] = {"division": DivisionAttr(tuple(self.splits.items()))}
        found |= {"place": StringAttr(self.place)} if self.place else {}
        return DictionaryAttr(found | ({} if self.us is None else {"us": _time(self.us)}))


@dataclass(frozen=True)
class KernelNote:
    """The loop of a kernel.

    Attributes:
        loop: its number in the function.
        over: the loops of the kernel that it goes over, and that the one inside goes over.
        runs: of the kernels that stand for it there, in their order; None if that is left open.
    """

    loop: int
    over: tuple[str, ...]
    runs: tuple[RunNote, ...] | None = None

    def put(self, op: kernel.KernelOp) -> None:
        """Note it at a kernel."""
        found: dict[str, Attribute] = {
            "loop": IntegerAttr(self.loop, i64),
            "over": ArrayAttr([StringAttr(name) for name in self.over]),
        }
        if self.runs is not None:
            found["runs"] = ArrayAttr([run.attribute for run in self.runs])
        op.attributes[PLAN] = DictionaryAttr(found)


def _numbers(values: Sequence[int]) -> ArrayAttr[IntegerAttr[Any]]:
    return ArrayAttr([IntegerAttr(n, i64) for n in values])


def _block(span: TripSpan) -> Sequence[int]:
    """Trips and pieces of each, and copies if there are any: what `_spans` reads."""
    return [span.trips, span.size, *([span.copies] if span.copies > 1 else [])]


def _time(us: float) -> FloatAttr[Any]:
    return FloatAttr(float(f"{us:.{_DIGITS}g}"), f64)


def put_loop_notes(function: func.FuncOp, notes: Sequence[LoopNote]) -> None:
    """Note loops at a function."""
    function.attributes[LOOPS] = ArrayAttr([note.attribute for note in notes])


def put_time(op: kernel.KernelOp, us: float) -> None:
    """Note the predicted time of a kernel."""
    op.attributes[TIME] = _time(us)


def has_notes(function: func.FuncOp) -> bool:
    """Return whether a function or a kernel in it has notes of loops."""
    return LOOPS in function.attributes or any(PLAN in op.attributes for op in function.body.walk())


def refuse_notes(module: ModuleOp) -> None:
    """Refuse a program with notes of loops, which no loops have been made of.

    Raises:
        PlanError: there is one.
    """
    for op in module.walk():
        if PLAN in op.attributes or LOOPS in op.attributes:
            message = "the program notes loops, and nothing has put them around their kernels"
            raise PlanError(message, where=_place(op), hint="run the pass materialize-plan before")


def loop_notes(function: func.FuncOp) -> list[LoopNote]:
    """Return the loops that a function notes.

    Raises:
        PlanError: the attribute is no such note.
    """
    said = function.attributes.get(LOOPS, ArrayAttr([]))
    where = placed(function.sym_name.data, function.location)
    if not isinstance(said, ArrayAttr):
        raise PlanError(f"{LOOPS} is a list of loops, got {said}", where=where, hint=_LOOP_FORM)
    return [_loop_note(one, where) for one in cast("ArrayAttr[Attribute]", said)]


def _loop_note(said: Attribute, where: str) -> LoopNote:
    parts = _parts(said, ("trips", "blocks", "us", "alone_us", "why"), "a loop", where, _LOOP_FORM)
    trips, blocks = _counts(parts.get("trips")), parts.get("blocks")
    if trips is not None and blocks is None and trips[0] > 1 and len(trips) <= 2:
        return LoopNote((TripSpan.of_all(trips[0]),), trips[1] if len(trips) > 1 else 1)
    pairs = [_counts(pair) for pair in cast("ArrayAttr[Attribute]", blocks)] if isinstance(blocks, ArrayAttr) else []
    spans = [pair for pair in pairs if pair is not None and 2 <= len(pair) <= 3]
    if spans and len(spans) == len(pairs) and "trips" not in parts:
        return LoopNote(_spans(spans))
    raise PlanError(
        f"a loop has one or two numbers of trips, or blocks of trips and pieces, got {said}",
        where=where,
        hint=f"{_LOOP_FORM}, or blocks = [[4, 8], [1, 3]] for 4 trips of 8 pieces and then one of 3",
    )


def _spans(blocks: Sequence[Sequence[int]]) -> tuple[TripSpan, ...]:
    pieces, start, found = sum(trips * size for trips, size, *_ in blocks), 0, list[TripSpan]()
    for trips, size, *copies in blocks:
        found.append(TripSpan(trips, size, pieces, start, *copies))
        start += trips * size
    return tuple(found)


def kernel_note(op: kernel.KernelOp) -> KernelNote | None:
    """Return the loop that a kernel notes; None if it notes none.

    Raises:
        PlanError: the attribute is no such note.
    """
    if (said := op.attributes.get(PLAN)) is None:
        return None
    where = _place(op)
    parts = _parts(said, ("loop", "over", "runs"), "a plan", where, _KERNEL_FORM)
    number, over, runs = _plain(parts.get("loop")), _plain(parts.get("over")), parts.get("runs")
    if not isinstance(number, int) or number < 0:
        raise PlanError(f"a plan names a loop by its number, got {parts.get('loop')}", where=where, hint=_KERNEL_FORM)
    if not isinstance(over, list) or not all(isinstance(name, str) for name in cast("list[object]", over)):
        message = f"a plan lists the loops of the kernel that its loop goes over, got {parts.get('over')}"
        raise PlanError(message, where=where, hint=_KERNEL_FORM)
    if runs is not None and not isinstance(runs, ArrayAttr):
        raise PlanError(f"the runs of a plan are a list, got {runs}", where=where, hint=_KERNEL_FORM)
    listed = None if runs is None else tuple(_run_note(one, where) for one in cast("ArrayAttr[Attribute]", runs))
    return KernelNote(number, tuple(cast("list[str]", over)), listed)


def _run_note(said: Attribute, where: str) -> RunNote:
    parts = _parts(said, ("division", "place", "us"), "a run", where, _KERNEL_FORM)
    division, place = parts.get("division"), _plain(parts.get("place", StringAttr("")))
    if not isinstance(division, DivisionAttr) or len(dict(division.data)) < len(division.data):
        raise PlanError(f"the division of a run names each loop once, got {division}", where=where, hint=_KERNEL_FORM)
    if place not in ("", *PLACES):
        raise PlanError(f"the place of a run is {' or '.join(PLACES)}, got {place!r}", where=where, hint=_KERNEL_FORM)
    return RunNote(dict(division.data), cast("str", place))


def _parts(said: Attribute, known: Sequence[str], owner: str, where: str, form: str) -> Mapping[str, Attribute]:
    """The parts of a note, each of which is known."""
    if not isinstance(said, DictionaryAttr):
        raise PlanError(f"the note of {owner} is a dictionary, got {said}", where=where, hint=form)
    if unknown := [name for name in said.data if name not in known]:
        raise PlanError(f"{owner} has no part {unknown[0]}", where=where, hint=f"its parts are {', '.join(known)}")
    return said.data


def _plain(said: Attribute | None) -> object:
    """Lists, numbers and texts in Python; anything else as it is."""
    if isinstance(said, ArrayAttr):
        return [_plain(one) for one in cast("ArrayAttr[Attribute]", said)]
    if isinstance(said, IntegerAttr):
        return cast("IntegerAttr[Any]", said).value.data
    return said.data if isinstance(said, StringAttr) else said


def _counts(said: Attribute | None) -> list[int] | None:
    """Numbers from 1 on; None if the attribute is no list of them, or empty."""
    found = _plain(said)
    if not isinstance(found, list) or not found:
        return None
    counts = cast("list[object]", found)
    return cast("list[int]", counts) if all(isinstance(n, int) and n > 0 for n in counts) else None


def _place(op: Operation) -> str:
    return placed(op.function_name if isinstance(op, kernel.KernelOp) else op.name, op.location)


__all__ = [
    "LOOPS",
    "PLAN",
    "TIME",
    "KernelNote",
    "LoopNote",
    "PlanError",
    "RunNote",
    "has_notes",
    "kernel_note",
    "loop_notes",
    "put_loop_notes",
    "put_time",
    "refuse_notes",
]
