"""Prices of a program with other loops around a kernel, or its result in another memory: it is planned once with each.

What hints ask for is put at the kernels as the planner is given them, and the rest is planned again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation

from spyre_mlir.backend.json_file import dump_text
from spyre_mlir.dialects.ir.modules import copy_of, ops_in
from spyre_mlir.dialects.places import source_of
from spyre_mlir.dialects.spyre.hints import HINT, Hint, hint_of
from spyre_mlir.dialects.spyre.kernel import AllocOp, KernelOp
from spyre_mlir.errors import SpyreError
from spyre_mlir.hw.division import divisors
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.options import PassOptions
from spyre_mlir.pipeline import LEVELS, made_passes, passes_to
from spyre_mlir.report.explanation.choice_tables import ExplainedChoice
from spyre_mlir.report.explanation.layout_prices import MOST_KERNELS, priced
from spyre_mlir.sizes import counted
from spyre_mlir.transforms.kernel_loops.row_loops import pieces_of, row_loops
from spyre_mlir.transforms.kernel_plans.plan_record import Loops, TriedLoop
from spyre_mlir.transforms.kernel_plans.unfit_buffers import unfit_reason
from spyre_mlir.transforms.plan import PlanPass
from spyre_mlir.universe import make_context

OTHERS = 2
MOST_TRIPS = 64  # of a loop that nobody looked at
MOST_PLANNED = 6  # of one explanation: the choices of more kernels are listed without prices
NUMBER = "spyre.explained"  # of a kernel, on its way through the planner
NO_LOOP = "no loop"

Cuts = Sequence[tuple[int, Mapping[str, int]]]  # trips over loops, by number of the kernel


def number_kernels(module: ModuleOp) -> None:
    """Number the kernels of a module, so that they are known in a copy of it and behind the planner."""
    for number, op in enumerate(op for op in ops_in(module) if isinstance(op, KernelOp)):
        op.attributes[NUMBER] = IntegerAttr(number, i64)


def numbers_taken(ops: Iterable[Operation]) -> dict[Operation, int]:
    """Return the numbers of kernels, and take the notes away; those that were made later have none."""
    found = {op: number for op in ops if (number := _number(op)) is not None}
    for op in found:
        op.attributes.pop(NUMBER, None)
    return found


def _number(op: Operation) -> int | None:
    found = op.attributes.get(NUMBER)
    return cast("IntegerAttr[Any]", found).value.data if isinstance(found, IntegerAttr) else None


@dataclass
class PlanPrices:
    """Prices of plans of a program.

    Attributes:
        unplanned: the program as the planner is given it, with numbered kernels.
        numbers: of the kernels in the finished program, and of those that it had before some were in loops.
        names: of the kernels in the finished program, by number.
        files: the program as it is compiled, at the last level.
        spec: the card.
        options: of passes.
    """

    unplanned: ModuleOp
    numbers: Mapping[Operation, int]
    names: Mapping[int, str]
    files: ModuleOp
    spec: SpyreSpec
    options: PassOptions
    _lowered: int = 0

    def place(self, number: int, now: str) -> tuple[ExplainedChoice, ...]:
        """Return the memory of a kernel's result, and the other one; nothing if the result is no buffer.

        Args:
            number: of the kernel.
            now: its memory in the finished program.
        """
        op = self._kernel(self.unplanned, number)
        if not isinstance(op.output.owner, AllocOp):
            return ()
        chosen, other = priced(now, self.files), "hbm" if now == "lx" else "lx"
        # A hint in a model concerns the results that other operations read.
        hint = (
            f'hint(place="{other}")'
            if _is_read_elsewhere(op)
            else f'{HINT} = {{place = "{other}"}} at its buffer in the text'
        )
        asked = ExplainedChoice(other, hint)
        reason = unfit_reason(op.output) if other == "lx" else ""
        if reason or not self._may_lower(1, chosen.kernels):
            return chosen, replace(asked, refused=reason)
        module = copy_of(self.unplanned)
        writer = self._kernel(module, number)
        if (said := hint_of(writer)) is not None:
            replace(said, place="").put(writer)
        if isinstance(alloc := writer.output.owner, AllocOp):
            Hint(place=other).put(alloc)
        return chosen, self._priced(asked, module)

    def loops(
        self,
        number: int,
        trips: Sequence[int],
        tried: Sequence[TriedLoop],
        taken: tuple[Loops, int] | None,
        rank: int | None,
    ) -> tuple[ExplainedChoice, ...]:
        """Return the loops around a kernel and the next best; nothing if no loop can be around it.

        Args:
            number: of the kernel.
            trips: of the loops in the finished program, outermost first.
            tried: loops that the planner looked at.
            taken: those of them that it took, with the number of their kernels.
            rank: of the operation that the kernel was made for; None if that is not known.
        """
        op = self._kernel(self.unplanned, number)
        looked_at = [(loop, self._cuts(loop)) for loop in tried]
        kernels = [op for op in ops_in(self.unplanned) if isinstance(op, KernelOp)]
        found = list(_best(looked_at, number, trips)) or list(_own_cuts(kernels, op, trips))
        if not found:
            return ()
        around = next((cuts for loop, cuts in looked_at if (loop.loops, len(loop.ops)) == taken and cuts), None)
        now = priced(_text(around, number) if around else _trips_text(trips), self.files)
        if trips:
            out = found[0] if around is None else around
            found = [[(n, dict.fromkeys(cut, 1)) for n, cut in out], *found]
        asked = [
            (cuts, ExplainedChoice(_text(cuts, number), _hint(op, cuts, number, rank) + self._around(cuts)))
            for cuts in found
        ]
        if not self._may_lower(len(asked), now.kernels):
            return now, *(choice for _, choice in asked[:OTHERS])
        made = [self._priced(choice, self._with(cuts)) for cuts, choice in asked]
        made.sort(key=lambda one: (one.price is None, 0.0 if one.price is None else one.price.total))
        return now, *made[:OTHERS]

    def _cuts(self, tried: TriedLoop) -> Cuts:
        """Loops that were tried, by number of each kernel; none where loops go through unequal blocks."""
        pairs = zip(tried.ops, tried.cuts, strict=False)
        return [(self.numbers[op], cut) for op, cut in pairs if op in self.numbers]

    def _around(self, cuts: Cuts) -> str:
        names = list(dict.fromkeys(self.names.get(number, "") for number, _ in cuts))
        return f" around {names[0]} to {names[-1]}" if len(names) > 1 else ""

    def _may_lower(self, more: int, kernels: int) -> bool:
        self._lowered += more
        return self._lowered <= MOST_PLANNED and self._lowered * kernels <= MOST_KERNELS

    def _kernel(self, module: ModuleOp, number: int) -> KernelOp:
        return next(op for op in ops_in(module) if isinstance(op, KernelOp) and _number(op) == number)

    def _with(self, cuts: Cuts) -> ModuleOp:
        module, wanted = copy_of(self.unplanned), dict[int | None, Mapping[str, int]](cuts)
        for op in ops_in(module):
            if isinstance(op, KernelOp) and (cut := wanted.get(_number(op))) is not None:
                replace(hint_of(op) or Hint(), tile=cut).put(op)
        return module

    def _priced(self, asked: ExplainedChoice, module: ModuleOp) -> ExplainedChoice:
        names, context = passes_to(LEVELS[-1]).split(","), make_context(self.spec)
        try:
            for one in made_passes(names[names.index(PlanPass.name) :], self.options):
                one.apply(context, module)
        except SpyreError as error:
            return replace(asked, refused=error.message)
        return replace(priced(asked.choice, module), hint=asked.hint)


def _best(looked_at: Sequence[tuple[TriedLoop, Cuts]], number: int, trips: Sequence[int]) -> Iterator[Cuts]:
    """The best of the loops that were tried around a kernel; of those with equal trips the one that gains most."""
    seen: list[list[int]] = [list(trips)]
    for _, cuts in sorted(looked_at, key=lambda pair: _gain_us(pair[0]), reverse=True):
        if (made := _trips(cuts, number)) and made not in seen:
            seen.append(made)
            yield cuts
        if len(seen) > OTHERS:
            return


def _gain_us(loop: TriedLoop) -> float:
    """The most that loops may gain, as far as that was looked at."""
    least = loop.least_us if loop.most_us is None else max(loop.least_us, loop.most_us)
    return loop.usual_us - (least if loop.us is None else loop.us)


def _own_cuts(kernels: Sequence[KernelOp], op: KernelOp, trips: Sequence[int]) -> Iterator[Cuts]:
    """The fewest trips over each dimension of a kernel's result, around the kernels of its operation."""
    made_for = source_of(op.location).number
    same = [k for k in kernels if k is op or (made_for and source_of(k.location).number == made_for)]
    for name in row_loops(op):
        dim = next((d for d, expr in enumerate(op.maps.data[-1].data) if [n for n, _ in expr.terms] == [name]), None)
        if dim is None or (few := next((n for n in _blocks(op, name) if n > 1 and [n] != list(trips)), None)) is None:
            continue
        loops = {k: name if k is op else _loop_at(k, dim, len(op.maps.data[-1].data)) for k in same}
        numbered = [(_number(k), {loop: few}) for k, loop in loops.items() if few in _blocks(k, loop)]
        yield [(number, cut) for number, cut in numbered if number is not None]


def _loop_at(op: KernelOp, dim: int, rank: int) -> str:
    """The loop of a kernel that walks a dimension of its result; empty if there is none."""
    index = op.maps.data[-1].data
    names = [name for name, _ in index[dim].terms] if len(index) == rank else []
    return names[0] if len(names) == 1 else ""


def _blocks(op: KernelOp, loop: str) -> list[int]:
    """Numbers of equal blocks of a loop, ascending; none if no loop of trips can go over it."""
    rows = row_loops(op).get(loop)
    return [] if rows is None else divisors(pieces_of(op, loop, rows), MOST_TRIPS)


def _is_read_elsewhere(op: KernelOp) -> bool:
    """Return whether a kernel of another operation reads the result."""
    made_for = source_of(op.location).number
    return any(
        isinstance(u.operation, KernelOp) and source_of(u.operation.location).number != made_for for u in op.output.uses
    )


def _trips(cuts: Cuts, number: int) -> list[int]:
    return [n for n in dict(cuts).get(number, {}).values() if n > 1]


def _trips_text(trips: Sequence[int]) -> str:
    return f"{' x '.join(map(str, trips))} trips" if trips else NO_LOOP


def _text(cuts: Cuts, number: int) -> str:
    cut = {name: n for name, n in dict(cuts)[number].items() if n > 1}
    if not cut:
        return NO_LOOP
    said = ", ".join(f"{n} trips over {name}" for name, n in cut.items())
    return f"{said} around {counted(len(cuts), 'kernel')}"


def _hint(op: KernelOp, cuts: Cuts, number: int, rank: int | None) -> str:
    """The hint in a model that asks for loops: by dimension, where the kernel has those of the operation."""
    index = op.maps.data[-1].data
    dims = {expr.terms[0][0]: d for d, expr in enumerate(index) if len(expr.terms) == 1} if rank == len(index) else {}
    said = (f"{dims.get(name, dump_text(name))}: {n}" for name, n in dict(cuts)[number].items())
    return f"hint(tile={{{', '.join(said)}}})"


__all__ = ["PlanPrices", "number_kernels", "numbers_taken"]
