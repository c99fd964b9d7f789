"""Verdict on a random program: exact numerics against torch in float64.

A step such as a floor, a comparison or a cast takes another side where rounding moves its operand over a boundary, and
a sum of terms that cancel out keeps their roundings. An element counts as unstable, and is not compared, where torch's
own float64 result changes

* when inputs, and results that eager rounds, move by a few parts in ten million: a rounding in single precision; or
* when a step that jumps reads what eager reads, which is rounded to the precision of its operand.

An element that is eager's own, to the bit, is right whatever float64 says.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import torch

import spyre_mlir
from spyre_mlir.errors import FaultKind, MachineFault, SpyreError
from spyre_mlir.hw.spec import spec_with
from tests.graphs.operators import Tensor
from tests.graphs.programs import Program, random_program
from tests.graphs.shares import has_branch_and_join, is_unaligned

TOLERANCE = 2e-4  # of the largest element: float32 sums of thousands of terms
NUDGES = (3e-7, -5e-7, 7e-7)
# Operators with two results as close as can be that are far apart.
JUMPS = {
    *("floor", "ceil", "round", "sign", "trunc", "frac", "argmax", "int"),
    *("gt", "le", "ne", "gt_scalar", "eq_scalar"),
}  # fmt: skip
DEVICE_ONE_IN = 4  # programs run in device numerics too, where faults count, unless rounding alone explains them
_ROUNDED = {FaultKind.NAN_BORN, FaultKind.INT32_OVERFLOW, FaultKind.INDEX_OUT_OF_RANGE, FaultKind.DIVISION_BY_ZERO}


def quiet() -> None:
    """Silence warnings and logs: outcomes are what counts."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)


@dataclass(frozen=True)
class Verdict:
    """Outcome of one program: `ok`, `refused`, `wrong` or `crash`, and why."""

    seed: int
    status: str
    detail: str = ""
    steps: int = 0
    unstable: int = 0
    traits: tuple[str, ...] = ()


def _wide_inputs(inputs: Sequence[torch.Tensor], nudge: float = 0.0) -> list[torch.Tensor]:
    made: list[torch.Tensor] = []
    for number, x in enumerate(inputs):
        if not x.is_floating_point():
            made.append(x)
            continue
        noise = torch.rand(x.shape, generator=torch.Generator().manual_seed(number), dtype=torch.float64)
        made.append(x.double() * (1 + nudge * (0.5 + noise)) + nudge * 1e-3)
    return made


def references(program: Program, inputs: Sequence[torch.Tensor]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Per result, torch's elements in float64, and which of them are stable."""
    wide, eager = program.wide(), program.values(inputs)
    exact = wide.values(_wide_inputs(inputs))
    stable = {n: torch.ones(exact[n].shape, dtype=torch.bool) for n in program.results}
    for moved in (*_rounded_differently(wide, inputs, eager, exact), *_other_sides(wide, inputs, eager, exact)):
        for n in program.results:
            apart = (moved[n].double() - exact[n].double()).abs()
            stable[n] &= apart <= TOLERANCE / 2 * _scale(exact[n])
    return [(exact[n], stable[n]) for n in program.results]


def _rounded_differently(
    wide: Program, inputs: Sequence[Tensor], eager: Sequence[Tensor], exact: Sequence[Tensor]
) -> Iterator[list[Tensor]]:
    """What becomes of other roundings to single precision: of inputs, and of numbers that steps compute."""
    rounded = [_is_rounded(x, y) for x, y in zip(eager, exact, strict=True)]
    for n, step in enumerate(wide.steps, len(inputs)):
        if exact[n].is_floating_point():  # what a step hands on from its operands is not rounded again
            given = torch.cat([exact[r].double().flatten() for r in step.reads])
            rounded[n] &= ~torch.isin(exact[n], given)
    for nudge in NUDGES:

        def nudged(_name: str, n: int, x: Tensor, nudge: float = nudge) -> Tensor:
            return torch.where(rounded[n], x * (1 + nudge * (0.5 + _noise(exact[n]))), x).to(x.dtype)

        yield wide.values(_wide_inputs(inputs, nudge), made=nudged)


def _noise(x: Tensor) -> Tensor:
    """Numbers from 0 to 1 that look random, the same for the same number: equal sums stay equal."""
    return (x.double() * 12_345.678).sin().mul(43_758.545).frac().abs()


def _other_sides(
    wide: Program, inputs: Sequence[Tensor], eager: Sequence[Tensor], exact: Sequence[Tensor]
) -> Iterator[list[Tensor]]:
    """What becomes of steps that jump if they read what eager reads, and a rounding of that precision more or less."""
    for roundings in (0, -1, 1):

        def as_eager(name: str, n: int, x: Tensor, roundings: int = roundings) -> Tensor:
            if name not in JUMPS or not x.is_floating_point():
                return x
            moved = eager[n].double() * (1 + roundings * torch.finfo(eager[n].dtype).eps)
            other = _is_rounded(eager[n], exact[n])
            if name == "frac":  # which follows its operand between the jumps
                other &= moved.trunc() != x.trunc()
            return torch.where(other, moved, x)

        yield wide.values(_wide_inputs(inputs), read=as_eager)


def _is_rounded(eager: Tensor, exact: Tensor) -> Tensor:
    """Where eager does not have the number of float64: nowhere in a tensor that is not of floats."""
    return (eager.double() != exact.double()) & torch.tensor(exact.is_floating_point())


def _scale(x: torch.Tensor) -> float:
    return max(float(x.double().abs().max()), 1e-6)


# What a program is compiled with, drawn by its seed: none of it changes exact numerics.
OPTIONS: Sequence[dict[str, Any]] = (
    {}, {}, {}, {"regions": False}, {"tile": False}, {"loops": "unroll"}, {"keep_float32": True}, {"share_files": True},
    {"prefer_device": True}, {"sdsc_version": "TSNEW"}, {"sdsc_version": "TS25"}, {"integers": "exact"},
    {"spec": spec_with({"cores_per_card": 3})}, {"spec": spec_with({"lx_usable_bytes": 16_384})},
    {"spec": spec_with({"cores_per_card": 1}), "tile": False, "keep_float32": True, "prefer_device": True},
)  # fmt: skip


def _device_fault(program: Program, inputs: Sequence[torch.Tensor], options: Mapping[str, Any]) -> MachineFault | None:
    """What the machine has to say about the program in device numerics, whose results may be off."""
    made = spyre_mlir.compile(program, inputs, host_fallback="allow", on_overflow="ignore", **options)
    try:
        made(*inputs)
    except MachineFault as fault:
        return None if fault.kind in _ROUNDED else fault
    return None


def judge(seed: int) -> Verdict:
    """Compile and call the program of a seed, and compare every stable element of every result."""
    program, inputs = random_program(seed)
    traits = {
        "branch and join": has_branch_and_join(program, len(inputs)),
        "are unaligned": is_unaligned(program, inputs),
    }
    verdict = _judged(seed, program, inputs)
    return replace(verdict, traits=tuple(name for name, holds in traits.items() if holds))


def _judged(seed: int, program: Program, inputs: Sequence[Tensor]) -> Verdict:
    options = Random(seed).choice(OPTIONS)
    eager, pairs = program(*inputs), references(program, inputs)
    count = len(program.steps)
    try:
        got = spyre_mlir.compile(program, inputs, numerics="exact", host_fallback="allow", **options)(*inputs)
        if seed % DEVICE_ONE_IN == 0 and (fault := _device_fault(program, inputs, options)) is not None:
            return Verdict(seed, "crash", f"device numerics: {fault}\n{program}", count)
    except MachineFault as fault:
        return Verdict(seed, "crash", f"{fault}\n{program}", count)
    except SpyreError as error:
        return Verdict(seed, "refused", f"{error}\n{program}", count)
    except Exception as error:  # noqa: BLE001 - every other exception is a finding
        return Verdict(seed, "crash", f"{type(error).__name__}: {error}\n{program}", count)
    unstable = 0
    for number, (result, (wanted, stable), plain) in enumerate(zip(got, pairs, eager, strict=True)):
        unstable += int((~stable).sum())
        if result.shape != plain.shape or result.dtype != plain.dtype:
            text = f"result {number} is {result.dtype}{list(result.shape)}, eager {plain.dtype}{list(plain.shape)}"
            return Verdict(seed, "wrong", f"{text}\n{program}", count)
        apart = (result.double() - wanted.double()).abs() / _scale(wanted)
        compared = stable & (result != plain)  # a result that is eager's to the bit follows its roundings
        apart = torch.where(compared, torch.nan_to_num(apart, nan=torch.inf), 0)
        limit = TOLERANCE if result.dtype not in (torch.float16, torch.bfloat16) else 5e-3
        if float(apart.max()) > limit:
            text = f"result {number} is off by {float(apart.max()):.2e} of its largest element"
            return Verdict(seed, "wrong", f"{text}\n{program}", count)
    return Verdict(seed, "ok", "", count, unstable)
