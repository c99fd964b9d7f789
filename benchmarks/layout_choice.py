"""How good the plans of small programs are: as first chosen, after trials, and the best of all that are legal.

`python benchmarks/layout_choice.py [--programs N] [--ops N] [--seed N] [--store FILE] [--again]`. Programs of one to so
many operators, drawn at random (`layout_programs.py`): element-wise ones, reductions and softmax over either dimension,
products, transposes, broadcasts, parts and joined tensors, of sizes with and without whole sticks.

The best is the quickest plan with any layouts of the nests. Of up to `MOST` combinations all are priced, of more those
around the first choice and the quickest of a sample are (*searched*). Each combination is planned twice: with the
divisions that pass `plan` considers (`layouts`), and with all legal ones (`all`; products keep theirs, see decision
141). The quickest few are lowered, and priced as the others are: by the timeline of their files, calibrated profile.
Nothing is measured on a card.

With `--store` results are appended to a file as they are found, and those in it are not found again; `--again` finds
the times of the first choice and of the trials again, for the bests that the file has.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from math import inf, prod
from pathlib import Path
from random import Random
from unittest.mock import patch

from layout_programs import drawn, told
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.debug.remaining_passes import lower_on
from spyre_mlir.dialects.ir.modules import copy_of, take_apart
from spyre_mlir.dialects.spyre.layout_choices import LAYOUT, LayoutAttr, LayoutChoice
from spyre_mlir.errors import SpyreError
from spyre_mlir.frontend import import_program
from spyre_mlir.pipeline import LEVELS
from spyre_mlir.planning.agreement import Spare
from spyre_mlir.planning.divisions import Kernel
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.transforms.buffer_layouts.choose_layouts import ChooseLayoutsPass
from spyre_mlir.transforms.buffer_layouts.repair.planned_layouts import PlannedLayouts
from spyre_mlir.transforms.buffer_layouts.repair.prices import LayoutPricing
from spyre_mlir.transforms.convert_spyre_loop_to_spyre_kernel import ConvertSpyreLoopToSpyreKernelPass
from spyre_mlir.universe import make_context

MOST = 300  # combinations of layouts of a program that are all priced
SAMPLE, STARTS = 120, 3  # of more combinations: so many are drawn, and the search goes on from the quickest of them
LOWERED = 2  # of the quickest combinations
LIMITS = (0.001, 0.02, 0.1, 0.5)
CONTEXT = make_context()

Layouts = tuple[LayoutChoice, ...]


@dataclass
class Row:
    """Times of a program, predicted microseconds.

    Attributes:
        key: seed, most operators, and number.
        program: the program as text.
        whole: whether all combinations were priced.
        us: by way: `chosen`, `tried`, `layouts` and `all`.
        best: the layouts of the quickest plan with any division, by the number of the op.
        seconds: CPU time of lowering, by way.
    """

    key: str
    program: str
    whole: bool = True
    us: dict[str, float] = field(default_factory=dict[str, float])
    best: dict[str, str] = field(default_factory=dict[str, str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])

    @property
    def best_us(self) -> float:
        """The least time of all."""
        return min(self.us.values())


def us(loop: ModuleOp, *, repair: bool) -> float:
    """Predicted time of a program at the loop level."""
    module, options = copy_of(loop), {ChooseLayoutsPass.name: {"repair": repair}}
    lower_on(module, CONTEXT, LEVELS[-1], options)
    return module_timeline(module, "calibrated").total_us


def _with_all(kernels: Sequence[Kernel], spare: Spare, _most_bytes: int) -> list[Kernel]:
    return [replace(k, candidates=(*k.candidates, *spare(n))) for n, k in enumerate(kernels)]


@contextmanager
def every_division() -> Generator[None]:
    """Have the planner consider all divisions of kernels without a product, short or not, on any number of cores."""
    choices = "spyre_mlir.transforms.kernel_plans.kernel_choices"
    search = "spyre_mlir.planning.divisions"
    with (
        patch(f"{choices}.with_spare", _with_all),
        patch(f"{choices}.SLOW", inf),
        patch(f"{search}.WIDTH", 1000),
    ):
        yield


@dataclass
class Combinations:
    """Layouts of the nests of a program, and the times of its plans with them.

    Attributes:
        loop: the program.
        open: the layouts that each nest may have, by the number of the op.
        first: those that they have at first.
    """

    loop: ModuleOp
    open: dict[int, Sequence[LayoutChoice]]
    first: Layouts
    pricing: LayoutPricing = field(default_factory=lambda: LayoutPricing(CONTEXT))
    known: dict[Layouts, float] = field(default_factory=dict[Layouts, float])

    @staticmethod
    def of(loop: ModuleOp) -> Combinations:
        """Combinations of dense layouts of a program."""
        (function,) = ChooseLayoutsPass().planned(CONTEXT, loop)
        planned = PlannedLayouts.of(function)
        function.take_back()
        numbers = {op: n for n, op in enumerate(loop.walk())}
        chosen = [(planned.choices[op], legal) for op, legal in planned.open.items()]
        first = tuple(next(c for c in legal if (c.lanes, c.stick) == (now.lanes, now.stick)) for now, legal in chosen)
        return Combinations(loop, {numbers[op]: legal for op, legal in planned.open.items()}, first)

    @property
    def count(self) -> int:
        """How many there are."""
        return prod(map(len, self.open.values()))

    def best_us(self) -> tuple[float, Layouts]:
        """The predicted time of the best plan that is found, after lowering it, and its layouts."""
        if self.count <= MOST:
            for layouts in product(*self.open.values()):
                self.us(layouts)
        else:
            self._search()
        quickest = sorted(self.known, key=lambda layouts: self.known[layouts])[:LOWERED]
        return min(((self._lowered_us(layouts), layouts) for layouts in quickest), key=lambda one: one[0])

    def us(self, layouts: Layouts) -> float:
        """The predicted time of the plan; infinite if there is none."""
        if layouts not in self.known:
            module = self._with(layouts)
            try:
                functions = ConvertSpyreLoopToSpyreKernelPass().planned(CONTEXT, module, checked=False)
                times = self.pricing.full(module, functions)
            except SpyreError:
                times = None
            take_apart(module)
            self.known[layouts] = inf if times is None else sum(times)
        return self.known[layouts]

    def _search(self) -> None:
        """Price a sample, and what is beside the quickest of it, until nothing is quicker."""
        random, listed = Random(0), list(self.open.values())
        sample = {tuple(random.choice(legal) for legal in listed) for _ in range(SAMPLE)}
        for layouts in (self.first, *sorted(sample, key=self.us)[:STARTS]):
            best, before = layouts, None
            while best != before:
                before = best
                for place, legal in enumerate(listed):
                    others = [(*best[:place], choice, *best[place + 1 :]) for choice in legal]
                    best = min(others, key=self.us)

    def _with(self, layouts: Layouts) -> ModuleOp:
        module, said = copy_of(self.loop), dict(zip(self.open, layouts, strict=True))
        for number, op in enumerate(module.walk()):
            if number in said:
                op.attributes[LAYOUT] = LayoutAttr(said[number])
        return module

    def _lowered_us(self, layouts: Layouts) -> float:
        try:
            return us(self._with(layouts), repair=False)
        except SpyreError:
            return inf


def _timed(row: Row, loop: ModuleOp) -> None:
    """Note the times of the first choice and of the trials."""
    for way, repair in (("chosen", False), ("tried", True)):
        started = time.process_time()
        row.us[way] = us(loop, repair=repair)
        row.seconds[way] = time.process_time() - started


def row_of(seed: int, ops: int, number: int, known: Row | None) -> Row:
    """The times of a program; the best ones are taken over from a row that is known."""
    random = Random(f"{seed} {ops} {number}")
    program, inputs = drawn(random, random.randint(1, ops) if ops <= 3 else ops)
    row = Row(f"{seed} {ops} {number}", told(program, inputs)) if known is None else known
    loop = import_program(program, inputs).module
    lower_on(loop, CONTEXT, "cut-columns")
    _timed(row, loop)
    if known is None:
        combinations = Combinations.of(loop)
        row.whole = combinations.count <= MOST
        row.us["layouts"], _ = combinations.best_us()
        with every_division():
            row.us["all"], layouts = Combinations.of(loop).best_us()
        row.best = {str(n): str(choice) for n, choice in zip(combinations.open, layouts, strict=True)}
    return row


def rows(keys: Sequence[tuple[int, int, int]], store: Path | None, *, again: bool) -> Iterator[Row]:
    """The rows of programs; those in the store are read, the others found and added to it."""
    lines = store.read_text().splitlines() if store is not None and store.exists() else []
    known: Mapping[str, Row] = {row.key: row for row in (Row(**json.loads(line)) for line in lines)}
    for seed, ops, number in keys:
        row = known.get(f"{seed} {ops} {number}")
        if row is None or again:
            fresh = row is None
            row = row_of(seed, ops, number, row)
            if store is not None and fresh:
                with store.open("a") as file:
                    file.write(json.dumps(asdict(row)) + "\n")
        yield row


def main() -> None:
    """Prints a line per miss, and how far from the best the plans are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=50)
    parser.add_argument("--ops", type=int, default=3)
    parser.add_argument("--seed", type=int, action="append", help="several may be given; 0, 1, 2 and 3 if none is")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    keys = [(seed, options.ops, n) for seed in options.seed or range(4) for n in range(options.programs)]
    found = list[Row]()
    for row in rows(keys, options.store, again=options.again):
        found.append(row)
        if row.us["tried"] > 1.02 * row.best_us:
            said = ", ".join(f"{way} {time_us:.2f}" for way, time_us in row.us.items())
            sys.stdout.write(f"{row.key}: {said}{'' if row.whole else ' searched'}: {row.program} {row.best}\n")
            sys.stdout.flush()
    for way in ("chosen", "tried", "layouts"):
        values = [row.us[way] / row.best_us for row in found if row.best_us > 0]
        within = (f"{sum(v <= 1 + part for v in values) / len(values):.1%} within {part:.1%}" for part in LIMITS)
        mean, most = sum(values) / len(values), max(values)
        seconds = sum(row.seconds.get(way, 0.0) for row in found)
        said = f"mean {mean:.3f}, most {most:.2f}, {seconds:.0f} s CPU"
        sys.stdout.write(f"{way}: {len(values)} programs, {', '.join(within)}, {said}\n")


if __name__ == "__main__":
    main()
