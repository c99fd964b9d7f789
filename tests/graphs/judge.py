"""Verdict on a random program: exact numerics against torch in float64.

A step such as a floor, a comparison or a cast takes another side where rounding moves its operand over a boundary. An
element counts as unstable, and is not compared, where torch's own float64 result changes when every input moves by a
few parts in ten million; an element that is eager's own, to the bit, is right whatever float64 says.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import torch

import spyre_mlir
from spyre_mlir.errors import FaultKind, MachineFault, SpyreError
from spyre_mlir.hw.spec import spec_with
from tests.graphs.programs import Program, random_program

TOLERANCE = 2e-4  # of the largest element: float32 sums of thousands of terms
NUDGES = (3e-7, -5e-7, 7e-7)
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
    wide = program.wide()
    wanted = wide(*_wide_inputs(inputs))
    stable = [torch.ones(w.shape, dtype=torch.bool) for w in wanted]
    for nudge in NUDGES:
        for number, moved in enumerate(wide(*_wide_inputs(inputs, nudge))):
            stable[number] &= (moved.double() - wanted[number].double()).abs() <= TOLERANCE / 2 * _scale(wanted[number])
    return list(zip(wanted, stable, strict=True))


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
