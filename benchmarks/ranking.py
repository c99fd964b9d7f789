"""How robust the plans of `workloads.toml` are: whether other numbers of the cost model would have led to better ones.

`python benchmarks/ranking.py [--only TEXT] [--jobs N] [--save FILE]`. A *setting* is a law of how many cores fill the
memory's bus, an overhead per SuperDSC, and one number of the cost model that is not certain, 50 % smaller or larger. A
plan *survives* a setting if, priced by it, the plan that the compiler chooses stays within 5 % of the best known one.
Known are the plan that the planner makes when it is given the setting, those that it makes under the other settings,
and those of `planning.py`: each kernel alone, and products by the published rules of torch-spyre's planner.

The planner does not run again where nothing can come of it:

* it never reads the number for this workload; the second share leaves these settings out;
* a known plan beats the chosen one by more than 5 %;
* the chosen plan is within 5 % of the serial bound at the highest rates of the setting;
* the change makes nothing quicker, and the chosen plan is within 5 % of the best one without it;
* it survives with no overhead and with the largest one: times are linear in the overhead, and a minimum of linear
  functions is concave.

The last two take the planner's plan as the best one without the change.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from planning import LAID_OUT_FREELY, WAYS
from workload_models import case, read
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.collector import paused_collector
from spyre_mlir.dialects.ir.modules import copy_of
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.cost import Work, total_us
from spyre_mlir.hw.cost_parameters import LAWS, CostParameters, differences, names, scaled, uncertain
from spyre_mlir.options import PassOptions
from spyre_mlir.pipeline import LEVELS, lower, made_passes, passes_to
from spyre_mlir.planning.bounds import Step, serial_us
from spyre_mlir.planning.steps import steps_of
from spyre_mlir.report.rival.building import RIVAL
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.transforms.utils.cost_numbers import number_texts
from spyre_mlir.universe import make_context

CORE_LAWS, OVERHEADS_US, FACTORS = ("calibrated", "quick-streams"), (0.0, 1.0, 5.0), (0.5, 1.5)
OVERHEAD = "kernel_fixed_us"
# Passes that ask the cost model.
PRICED = ("choose-layouts", "view-copies", "order-batches", "plan", "forward-results", "stage-transfers")
WITHIN = 1.05
# More of these is slower; more of every other number, such as rates and what is free, is quicker.
LOSSES = ("_ns_per_byte", "_ns_per_element", "_exponent", "_us", "_slowdown", "pe_fill_rows")
RESULTS = Path(__file__).parent / "data" / "ranking.json"


@dataclass(frozen=True)
class Base:
    """A law and an overhead per SuperDSC."""

    law: str
    overhead_us: float

    @property
    def parameters(self) -> CostParameters:
        """The numbers of the cost model."""
        return replace(LAWS[self.law], **{OVERHEAD: self.overhead_us})


@dataclass(frozen=True)
class Setting:
    """One number changed under a law and an overhead."""

    base: Base
    number: str
    factor: float

    @property
    def parameters(self) -> CostParameters:
        """The numbers of the cost model."""
        return scaled(self.base.parameters, self.number, self.factor)


def bases() -> list[Base]:
    """Every law with every overhead."""
    return [Base(law, us) for law in CORE_LAWS for us in OVERHEADS_US]


def settings(base: Base) -> list[Setting]:
    """Every number that is not certain, in both directions; the overhead is not one of them."""
    return [Setting(base, number, factor) for number in uncertain() if number != OVERHEAD for factor in FACTORS]


@dataclass(frozen=True)
class Plan:
    """Kernels of a finished program: what each does, and how many do just that; and the bytes of its host steps."""

    works: tuple[tuple[Work, int], ...]
    host_bytes: int

    def us(self, parameters: CostParameters) -> float:
        """Predicted time."""
        kernels = sum([count * total_us(work, parameters) for work, count in self.works])
        return kernels + (self.host_bytes / parameters.host_link_gb_per_s / 1000 if self.host_bytes else 0.0)


class Planner:
    """A workload before its layouts and divisions are priced.

    Attributes:
        steps: what it has to do, for bounds.
        runs: how often it was planned.
    """

    def __init__(self, workload: dict[str, Any]) -> None:
        built = case(workload)
        self.context, self.runs = make_context(), 0
        self._module: ModuleOp | None = None
        lowered = lower(import_program(built.model, built.inputs).module, self.context, watch=self)
        self.steps: Sequence[Step] = steps_of(lowered.modules["spyre.loop"])

    def before(self, name: str, module: ModuleOp) -> None:
        """Keep what the first pass that prices is given."""
        if name == PRICED[0]:
            self._module = copy_of(module)

    def after(self, name: str, module: ModuleOp) -> None:
        """Nothing to do."""

    def plan(self, numbers: Mapping[str, float], options: PassOptions | None = None) -> Plan:
        """The plan for these numbers instead of the calibrated profile's."""
        with paused_collector():
            timeline = module_timeline(self._lowered(numbers, options or {}))
        works = Counter(kernel.work for kernel in timeline.kernels)
        return Plan(tuple(works.items()), sum(step.moved_bytes for step in timeline.host_steps))

    def numbers_read(self, numbers: Mapping[str, float]) -> set[str]:
        """The numbers of the cost model that decide about the plan."""
        with numbers_read() as found:
            self._lowered(numbers, {})
        return found

    def _lowered(self, numbers: Mapping[str, float], options: PassOptions) -> ModuleOp:
        assert self._module is not None
        self.runs += 1
        module, passes = copy_of(self._module), passes_to(LEVELS[-1]).split(",")
        fields = {name: dict(values) for name, values in options.items()}
        for name in PRICED if numbers else ():
            fields.setdefault(name, {})["numbers"] = number_texts(numbers)
        for one in made_passes(passes[passes.index(PRICED[0]) :], fields):
            one.apply(self.context, module)
        return module


@contextmanager
def numbers_read() -> Iterator[set[str]]:
    """Collect the numbers of the cost model that anything reads."""
    known, found = frozenset(names()), set[str]()

    def read_number(self: CostParameters, name: str) -> Any:
        if name in known:
            found.add(name)
        return object.__getattribute__(self, name)

    # A key of a memory uses no number; and what other plans have learned is asked again.
    by_object = patch.object(CostParameters, "__hash__", object.__hash__)
    with by_object, patch.object(CostParameters, "__getattribute__", read_number):
        yield found


def bound_us(steps: Sequence[Step], p: CostParameters) -> float:
    """A time that no plan beats, whichever access or product has the highest rate."""
    memory = max(p.hbm_gb_per_s, p.restickify_gb_per_s, p.broadcast_gb_per_s, p.outer_reduction_gb_per_s)
    macs = max(getattr(p, name) for name in names() if name.endswith("mac_per_ns_per_core"))
    return serial_us(steps, replace(p, hbm_gb_per_s=memory, pe_mac_per_ns_per_core=macs))


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """How a workload's plan does in all settings.

    Attributes:
        workload: its name.
        settings: how many there are.
        entering: in how many of them the planner reads the number that is changed.
        within: in how many the plan is within 5 % of the best known one.
        entering_within: in how many of those whose number the planner reads.
        by_base: the share of settings survived, by law and overhead.
        breaks: by number, how many settings the plan does not survive in which it is changed.
        unchanged: the plan over the best known one with no number changed, by law and overhead.
        worst: the same in the worst setting, and which it is.
        plans: different plans found.
        runs: how often the planner ran.
        seconds: CPU time.
    """

    workload: str
    settings: int
    entering: int
    within: int
    entering_within: int
    by_base: Mapping[str, float]
    breaks: Mapping[str, int]
    unchanged: Mapping[str, float]
    worst: tuple[float, str]
    plans: int
    runs: int
    seconds: float


def slows(setting: Setting) -> bool:
    """Whether the change of a number makes no kernel quicker: the unit in its name says what more of it means."""
    return (setting.factor > 1) == setting.number.endswith(LOSSES)


class _Known:
    """The plans that are known of a workload, and what they say about a setting."""

    def __init__(self, planner: Planner) -> None:
        self.planner, self.chosen = planner, planner.plan({})
        others = (WAYS["alone"], {**RIVAL, **LAID_OUT_FREELY})
        self.plans = dict.fromkeys([self.chosen, *(planner.plan({}, options) for options in others)])
        self.read = dict[Base, set[str]]()
        for base in bases():
            parameters, numbers = base.parameters, differences(base.parameters)
            with numbers_read() as priced:
                self.chosen.us(parameters)
            self.read[base] = priced | planner.numbers_read(numbers)
            self.plans[planner.plan(numbers)] = None

    def best_us(self, p: CostParameters) -> float:
        """The time of the quickest plan."""
        return min([plan.us(p) for plan in self.plans])

    def ratio(self, p: CostParameters) -> float:
        """The chosen plan's time over that of the quickest one."""
        return self.chosen.us(p) / self.best_us(p)

    def look(self, setting: Setting) -> None:
        """Plan for a setting if nothing else says whether the chosen plan survives it."""
        if self._is_open(setting):
            self.plans[self.planner.plan(differences(setting.parameters))] = None

    def _is_open(self, setting: Setting) -> bool:
        p, base = setting.parameters, setting.base
        if setting.number not in self.read[base] or self.ratio(p) > WITHIN:
            return False
        us = self.chosen.us(p)
        if us <= WITHIN * bound_us(self.planner.steps, p):
            return False
        if slows(setting) and us <= WITHIN * self.best_us(base.parameters):
            return False
        ends = {OVERHEADS_US[0], OVERHEADS_US[-1]}
        outer = [replace(setting, base=replace(base, overhead_us=end)) for end in ends]
        return base.overhead_us in ends or any(self.ratio(s.parameters) > WITHIN for s in outer)


def ranked(workload: dict[str, Any], tell: bool = False) -> Ranking:
    """Plans a workload for every setting that could have a better plan, and prices all plans in all settings."""
    started, known = time.process_time(), _Known(Planner(workload))
    inside = OVERHEADS_US[1:-1]  # after the ends, which may decide about them
    for base in sorted(bases(), key=lambda b: b.overhead_us in inside):
        for setting in settings(base):
            known.look(setting)
        if tell:
            told = f"{workload['name']}: {_key(base)}, {known.planner.runs} runs"
            print(f"  {told}, {time.process_time() - started:.0f} s", file=sys.stderr, flush=True)
    return _ranking(workload["name"], known, started)


def _ranking(name: str, known: _Known, started: float) -> Ranking:
    ratios = {setting: known.ratio(setting.parameters) for base in bases() for setting in settings(base)}
    enter = [s for s in ratios if s.number in known.read[s.base]]
    worst = max(ratios, key=lambda s: ratios[s])
    broken = Counter(s.number for s, r in ratios.items() if r > WITHIN)
    return Ranking(
        workload=name,
        settings=len(ratios),
        entering=len(enter),
        within=sum(r <= WITHIN for r in ratios.values()),
        entering_within=sum(ratios[s] <= WITHIN for s in enter),
        by_base={
            _key(base): sum(ratios[s] <= WITHIN for s in settings(base)) / len(settings(base)) for base in bases()
        },
        breaks=dict(broken.most_common()),
        unchanged={_key(base): known.ratio(base.parameters) for base in bases()},
        worst=(ratios[worst], f"{worst.number} x {worst.factor:g}, {_key(worst.base)}"),
        plans=len(known.plans),
        runs=known.planner.runs,
        seconds=time.process_time() - started,
    )


def _key(base: Base) -> str:
    return f"{base.law}, {base.overhead_us:g} us"


HEAD = (
    f"{'workload':46} {'survives':>8} {'entering':>8} "
    + " ".join(f"{us:g} us".rjust(6) for us in OVERHEADS_US)
    + f" {'worst':>6} {'plans':>5} {'runs':>5} {'CPU s':>6}  breaks it most often"
)


def row(ranking: Ranking) -> str:
    """One line of the table: overheads with both laws together."""
    overheads = [sum(ranking.by_base[_key(Base(law, us))] for law in CORE_LAWS) / len(CORE_LAWS) for us in OVERHEADS_US]
    most = next(iter(ranking.breaks.items()), None)
    cells = [f"{ranking.workload:46} {ranking.within / ranking.settings:8.0%}"]
    cells += [f"{ranking.entering_within / max(1, ranking.entering):8.0%}", *(f"{part:6.0%}" for part in overheads)]
    cells += [f"{ranking.worst[0]:6.2f} {ranking.plans:5} {ranking.runs:5} {ranking.seconds:6.0f}"]
    return " ".join([*cells, "" if most is None else f" {most[0]} ({most[1]})"])


def save(path: Path, ranking: Ranking) -> None:
    """Write a workload's result beside those that a file has, in the order of the workloads."""
    found = {r["workload"]: r for r in load(path)} | {ranking.workload: asdict(ranking)}
    order = [found[w["name"]] for w in read() if w["name"] in found]
    path.write_text(json.dumps(order, indent=1) + "\n", encoding="utf-8")


def load(path: Path) -> list[dict[str, Any]]:
    """Return the results that a file has; none if it does not exist."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    parser.add_argument("--jobs", type=int, default=1, help="workloads at a time (default 1)")
    parser.add_argument("--save", type=Path, help=f"also write results to a file, such as {RESULTS.name}")
    parser.add_argument("--missing", action="store_true", help="only workloads that the file of --save lacks")
    arguments = parser.parse_args()
    done = {r["workload"] for r in load(arguments.save)} if arguments.missing and arguments.save else set[str]()
    chosen = [w for w in read() if arguments.only in w["name"] and w["name"] not in done]
    print(HEAD, flush=True)
    with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as pool:
        for ranking in pool.map(ranked, chosen, [True] * len(chosen)):
            print(row(ranking), flush=True)
            if arguments.save:
                save(arguments.save, ranking)
    return 0


if __name__ == "__main__":
    sys.exit(main())
