"""Comparison of a card with the machine, kernel by kernel.

The machine runs a bundle in the card's numerics. Each step gets the tensors that the machine had before it, so an error
does not travel on; what a kernel leaves in device memory is compared with what it left in the machine's.

Decision: docs/decisions/0158-a-card-is-asked-kernel-by-kernel.md
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from spyre_mlir.backend.stored import StoredBundle, read_bundle
from spyre_mlir.debug.named_inputs import argument_types, bound_inputs, place_limits
from spyre_mlir.debug.stored_runs import own_draws, stored_program
from spyre_mlir.dialects.places import source_of
from spyre_mlir.dialects.sdscbundle import SdscExecuteOp
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor
from spyre_mlir.dialects.superdsc.model.keys import LX
from spyre_mlir.errors import InputError
from spyre_mlir.machine.bundle.external_bundle import (
    ExternalLaunch,
    foreign_program,
    random_value,
    run_foreign,
)
from spyre_mlir.machine.bundle.host_program import run_program
from spyre_mlir.machine.bundle.probes import operand_values, written_values
from spyre_mlir.machine.memory.choice import memory_for
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.runtime.finding import CardSoftware
from spyre_mlir.runtime.launching import compile_step, run_steps
from spyre_mlir.runtime.steps import CardStep, card_steps
from spyre_mlir.runtime.writing import read_results, write_arguments, write_step
from spyre_mlir.universe import make_context

Array = NDArray[Any]
Verdict = Literal["agrees", "differs", "failed", "compiled", "not seen", "not run"]
# Some four steps of DLFloat16 beside the largest value: its nine fraction bits, and sums in another order.
TOLERANCE = 2.0**-7
_DEVICE = MachineOptions(numerics="device")
_GOOD: tuple[Verdict, ...] = ("agrees", "compiled", "not seen")


@dataclass(frozen=True)
class KernelOnCard:
    """Outcome of one kernel on the card.

    Attributes:
        name: of the launch.
        function: its hardware function.
        verdict: `agrees` or `differs` after a comparison; `compiled` if nothing was to run; `not seen` if its result
            is in a scratchpad, so that a later kernel of its step shows it; `failed` on the card; `not run` if the card
            could not be given it.
        error: largest difference from the machine over the machine's largest value; None if nothing was compared.
        reason: why it failed or did not run.
        source: the line of the model, if it is known.
    """

    name: str
    function: str
    verdict: Verdict
    error: float | None = None
    reason: str = ""
    source: str = ""

    def __str__(self) -> str:
        error = "" if self.error is None else f"  {self.error:.2e}"
        reason = f"\n    {self.reason}" if self.reason else ""
        return f"{self.name}  {self.function}  {self.verdict}{error}  {self.source}".rstrip() + reason


@dataclass(frozen=True)
class CardComparison:
    """A card held against the machine; true if no kernel differs, failed or was left out.

    Attributes:
        kernels: in the order of their launches.
        tolerance: largest error that agrees.
    """

    kernels: tuple[KernelOnCard, ...]
    tolerance: float = TOLERANCE

    def __bool__(self) -> bool:
        return all(kernel.verdict in _GOOD for kernel in self.kernels)

    def __str__(self) -> str:
        verdicts = [kernel.verdict for kernel in self.kernels]
        counts = ", ".join(f"{verdicts.count(v)} {v}" for v in dict.fromkeys(verdicts))
        lines = [*map(str, self.kernels), f"card: {len(verdicts)} kernels: {counts}; tolerance {self.tolerance:.2g}"]
        return "\n".join(lines)


@dataclass
class _Made:
    """Results of the machine: per launch, those in device memory, and which of their elements were written.

    Attributes:
        obstacles: why a step cannot be given to the card.
    """

    expected: dict[int, tuple[Array, Array]] = field(default_factory=dict[int, tuple[Array, Array]])
    obstacles: dict[int, str] = field(default_factory=dict[int, str])


@dataclass
class _Program:
    """A program that can run: its launches, and a run that shows the memory before and behind each."""

    launches: list[ExternalLaunch]
    run: Callable[[Callable[[Memory], None], Callable[[Memory], None]], object]


def compare_with_card(
    directory: str | Path,
    card: CardSoftware,
    inputs: Mapping[str, Array] | None = None,
    *,
    seed: int = 0,
    tolerance: float = TOLERANCE,
    keep: str | Path | None = None,
) -> CardComparison:
    """Run a bundle on a card step by step, and compare every kernel with the machine.

    Args:
        directory: the bundle, ours or another's.
        card: see `find_card`; without an interpreter the steps are compiled, and nothing runs.
        inputs: values of arguments by name; others come from the bundle's data file, else they are random.
        seed: of random inputs.
        tolerance: largest error that agrees, over the machine's largest value of the kernel.
        keep: where the directories of the steps stay; by default they are removed.

    Raises:
        ReadError: the bundle is not one.
        InputError: a value is of no argument; the place for the steps is not empty; the tolerance is negative.
        MachineFault: the program misbehaves on the machine.
    """
    if not tolerance >= 0:
        raise InputError(f"a tolerance of {tolerance}", hint="give a number that is not negative")
    stored = read_bundle(Path(directory), make_context())
    if keep is not None and Path(keep).exists() and any(Path(keep).iterdir()):
        raise InputError("the place for the steps is not empty", where=str(keep), hint="name a new directory")
    program = _program(stored, inputs or {}, seed)
    steps = card_steps(program.launches)
    with nullcontext(str(keep)) if keep is not None else tempfile.TemporaryDirectory(prefix="spyre-card-") as place:
        root = Path(place).resolve()
        root.mkdir(parents=True, exist_ok=True)
        folders = {
            step.first: root / f"step_{number}_{step.name.replace('#', '_')}" for number, step in enumerate(steps)
        }
        made = _run_machine(program, steps, folders, stored)
        failed = _run_card(steps, folders, made, card, root)
        kernels = [
            kernel for step in steps for kernel in _judged(step, folders[step.first], made, failed, card, tolerance)
        ]
    return CardComparison(tuple(kernels), tolerance)


def _program(stored: StoredBundle, given: Mapping[str, Array], seed: int) -> _Program:
    if stored.program is None:
        return _foreign(stored, given, seed)
    program = stored_program(stored)
    held = stored.weight_names()
    types, limits = argument_types(program.host), place_limits(program.host)
    inputs = bound_inputs(types, given, stored.values(), held, seed, limits)
    seen: dict[str, int] = {}
    launches: list[ExternalLaunch] = []

    def note(op: SdscExecuteOp, view: Descriptor, _: Memory, symbols: Mapping[int, int]) -> None:
        stem = op.sdsc_filename.data.removesuffix(".json")
        count = seen[stem] = seen.get(stem, 0) + 1
        launches.append(ExternalLaunch(op, stem if count == 1 else f"{stem}#{count}", view, dict(symbols)))

    run_program(replace(program, watch=note, executor=own_draws()), inputs, _DEVICE)

    def again(before: Callable[[Memory], None], behind: Callable[[Memory], None]) -> object:
        def first(_op: SdscExecuteOp, _view: Descriptor, memory: Memory, _symbols: Mapping[int, int]) -> None:
            before(memory)

        def then(_op: SdscExecuteOp, _view: Descriptor, memory: Memory, _symbols: Mapping[int, int]) -> None:
            behind(memory)

        watched = replace(program, before=first, watch=then, executor=own_draws())
        return run_program(watched, inputs, _DEVICE)

    return _Program(launches, again)


def _foreign(stored: StoredBundle, given: Mapping[str, Array], seed: int) -> _Program:
    program = foreign_program(stored.bundle, stored.descriptor)
    names = [tensor.name for tensor in program.inputs]
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InputError(f"the bundle has no input '{unknown[0]}'", hint=f"its inputs are {', '.join(names) or 'none'}")
    random = np.random.default_rng(seed)
    values = {t.name: given[t.name] if t.name in given else random_value(t, random) for t in program.inputs}

    def run(before: Callable[[Memory], None], behind: Callable[[Memory], None]) -> object:
        return run_foreign(
            program,
            values,
            _DEVICE,
            watch=lambda _, memory: behind(memory),
            before=lambda _, memory: before(memory),
        )

    return _Program(list(program.steps), run)


def _run_machine(program: _Program, steps: list[CardStep], folders: Mapping[int, Path], stored: StoredBundle) -> _Made:
    """Run on the machine; write the directory of each step as it is reached."""
    made, starts, number = _Made(), {step.first: step for step in steps}, 0
    files = {name: stored.folders.get(name, stored.directory) for name in _files(program)}

    def before(memory: Memory) -> None:
        step = starts.get(number)
        if step is None:
            return
        obstacle = step.obstacle
        if not obstacle:
            write_step(step, folders[number], files)
            obstacle = write_arguments(step, folders[number], memory)
        if obstacle:
            made.obstacles[number] = obstacle

    def behind(memory: Memory) -> None:
        nonlocal number
        launch = program.launches[number]
        last = len(launch.view.operands) - 1
        if launch.view.operands[last].component != LX:
            made.expected[number] = written_values(launch.view, last, memory, launch.symbols)
        number += 1

    program.run(before, behind)
    return made


def _files(program: _Program) -> set[str]:
    return {launch.op.sdsc_filename.data for launch in program.launches}


def _run_card(
    steps: list[CardStep], folders: Mapping[int, Path], made: _Made, card: CardSoftware, root: Path
) -> dict[int, str]:
    """Compile and run the steps; return why some failed, by their first launch."""
    failed: dict[int, str] = {}
    ready: dict[Path, int] = {}
    for step in steps:
        if step.first in made.obstacles:
            continue
        if problem := compile_step(folders[step.first], card):
            failed[step.first] = problem
        else:
            ready[folders[step.first]] = step.first
    if card.python is not None and ready:
        failed |= {ready[folder]: problem for folder, problem in run_steps(list(ready), card, root).items()}
    return failed


def _judged(
    step: CardStep, folder: Path, made: _Made, failed: Mapping[int, str], card: CardSoftware, tolerance: float
) -> list[KernelOnCard]:
    reason = made.obstacles.get(step.first) or failed.get(step.first, "")
    if reason:
        verdict: Verdict = "not run" if step.first in made.obstacles else "failed"
        return [_kernel(launch, verdict, None, reason if n == 0 else "") for n, launch in enumerate(step.launches)]
    if card.python is None:
        return [_kernel(launch, "compiled") for launch in step.launches]
    memory = memory_for(_DEVICE)
    try:
        read_results(step, folder, memory)
    except (OSError, ValueError) as error:
        return [_kernel(launch, "failed", None, str(error)) for launch in step.launches]
    overwritten = _overwritten(step)
    found: list[KernelOnCard] = []
    for number, launch in enumerate(step.launches, start=step.first):
        if number not in made.expected or number in overwritten:
            found.append(_kernel(launch, "not seen"))
            continue
        got = operand_values(launch.view, len(launch.view.operands) - 1, memory, launch.symbols)
        error = _error(got, *made.expected[number])
        found.append(_kernel(launch, "agrees" if error <= tolerance else "differs", error))
    return found


def _overwritten(step: CardStep) -> set[int]:
    """Launches whose result a later launch of the step writes over."""
    gone: set[int] = set()
    later: set[int] = set()
    for number, launch in reversed(list(enumerate(step.launches, start=step.first))):
        last = len(launch.view.operands) - 1
        if launch.view.operands[last].component == LX:
            continue
        sticks = set(launch.sticks(last).tolist())
        if sticks & later:
            gone.add(number)
        later |= sticks
    return gone


def _error(got: Array, expected: Array, written: Array) -> float:
    """Return the largest difference over the largest expected value; NaN and infinities have to agree.

    Args:
        got: what the card has.
        expected: what the machine has.
        written: which elements the machine has written; the others say nothing.
    """
    if not written.any():
        return 0.0
    wanted, have = expected[written].astype(np.float64), got[written].astype(np.float64)
    same = (wanted == have) | (np.isnan(wanted) & np.isnan(have))
    with np.errstate(invalid="ignore"):
        apart = np.where(same, 0.0, np.abs(have - wanted))
    apart = np.where(np.isnan(apart), np.inf, apart)
    finite = np.abs(wanted[np.isfinite(wanted)])
    largest = float(finite.max(initial=0.0)) or 1.0
    return float(apart.max()) / largest


def _kernel(launch: ExternalLaunch, verdict: Verdict, error: float | None = None, reason: str = "") -> KernelOnCard:
    source = str(source_of(launch.op.location) or "")
    return KernelOnCard(launch.name, launch.view.op_func_name, verdict, error, reason, source)


__all__ = ["TOLERANCE", "CardComparison", "KernelOnCard", "Verdict", "compare_with_card"]
