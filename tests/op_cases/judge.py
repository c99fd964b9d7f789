"""Runs a case from its bundle in device numerics, and holds what comes back against torch.

Rule for what a result may be off by, the only place that says it: `allowed` units in the last place of DLFloat16. That
is the sum of the ulps that the op table gives the ops of the program, as it is imported; ops that only move elements
add nothing, so that a program of nothing else must give every bit. A unit is that of the element expected, or, where a
result is a sum whose terms may cancel, that of the sum of magnitudes (`Program.sized`): a relative error of a sum near
zero says nothing of how it was computed. Where the dtype of a result is coarser than DLFloat16 (bfloat16, and float16
below its normal numbers), the unit is the dtype's. Since the device accumulates wide and rounds once per stored result,
no allowance grows with the length of a sum. Truth values and integers are equal or wrong; indices count as what they
select. DLFloat16 has one code for infinity and NaN: where torch gives infinity, NaN is right. Infinity stands for every
number from the first on that the dtype of a result cannot hold. Shapes and dtypes are those that torch gives.
"""

from __future__ import annotations

import math
import time
import warnings
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves

import spyre_mlir
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.errors import SpyreError, UnsupportedError
from spyre_mlir.ops.table import Family
from tests.functions import FunctionModel
from tests.op_cases.cases import Case
from tests.op_cases.notation import Tensor, make
from tests.op_cases.program import TEMPLATES, NotAProgramError, Program, Tensors
from tests.oracles.bundle_steps import host_steps
from tests.states import code_digest

# Fraction bits, and the exponent of the smallest normal number, whose unit is that of everything below.
DL16 = (9, -31)
FORMATS = {torch.float16: (10, -14), torch.bfloat16: (7, -126)}
MOVING = (Family.VIEW, Family.MOVEMENT, Family.CREATION)
PASSED, WRONG, REFUSED, CRASHED, NO_PROGRAM = "passed", "wrong", "refused", "crashed", "no program"


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes:
        ulps: largest error, in the units that the rule says.
        host: names of the steps that the host computes.
        code: digest of the compiler that was judged.
    """

    status: str
    why: str = ""
    ulps: float = 0.0
    allowed: float = 0.0
    kernels: int = 0
    host: tuple[str, ...] = ()
    seconds: float = 0.0
    code: str = ""


def program_of(case: Case) -> Program:
    """The case as a program; its numbers depend on its name alone.

    Raises:
        NotAProgramError: there is none.
    """
    generator = torch.Generator().manual_seed(zlib.crc32(case.id.encode()))
    arguments = [make(a, generator) if isinstance(a, Tensor) else a for a in case.arguments]
    return TEMPLATES[case.template](case, arguments)


def run(case: Case) -> Outcome:
    """Compiles and runs a case; whatever goes wrong is its outcome."""
    start = time.monotonic()
    try:
        outcome = judged(program_of(case))
    except NotAProgramError as reason:
        return Outcome(NO_PROGRAM, str(reason))
    except UnsupportedError as error:
        outcome = Outcome(REFUSED, str(error))
    except SpyreError as error:
        outcome = Outcome(WRONG, f"{type(error).__name__}: {error}")
    except Exception as error:  # noqa: BLE001 - a crash is an outcome too, and the rest is to run
        outcome = Outcome(CRASHED, f"{type(error).__name__}: {error}")
    facts = {**vars(outcome), "seconds": round(time.monotonic() - start, 2), "code": code_digest()}
    return Outcome(**facts)


def judged(program: Program) -> Outcome:
    """Compiles a program, runs its bundle, and compares."""
    compiled = spyre_mlir.compile(FunctionModel(program.call), copies(program.inputs), host_fallback="allow")
    got = tree_leaves(compiled(*copies(program.inputs)))
    allowed = allowance(compiled)
    facts: dict[str, Any] = {
        "allowed": allowed,
        "kernels": compiled._lowered.records[-1].kernels,
        "host": tuple(step.callee for step in host_steps(compiled.bundle_directory()) if step.reason),
    }
    if different := unlike(got, kinds(program)):
        return Outcome(WRONG, different, math.inf, **facts)
    ulps = largest_error(program, got)
    return Outcome(PASSED if ulps <= allowed else WRONG, "" if ulps <= allowed else "error", round(ulps, 2), **facts)


def copies(inputs: Tensors) -> Tensors:
    """Inputs that a program may write to."""
    return tuple(torch.empty_strided(t.shape, t.stride(), dtype=t.dtype).copy_(t) for t in inputs)


def allowance(compiled: Any) -> float:
    """The sum of the ulps that the op table gives the ops of a program."""
    ops = [op for op in compiled._lowered.modules["aten"].walk() if isinstance(op, AtenOp)]
    entries = [op.entry for op in ops]
    return sum(entry.ulps for entry in entries if entry is not None and entry.family not in MOVING)


def kinds(program: Program) -> list[tuple[tuple[int, ...], torch.dtype]]:
    """Shapes and dtypes of the results, as torch says without computing them."""
    with FakeTensorMode() as mode:
        leaves = tree_leaves(program.call(*(mode.from_tensor(t) for t in program.inputs)))
    return [(tuple(leaf.shape), leaf.dtype) for leaf in leaves]


def unlike(got: Sequence[torch.Tensor], wanted: Sequence[tuple[tuple[int, ...], torch.dtype]]) -> str:
    """How shapes and dtypes differ; empty if they do not."""
    found = [(tuple(leaf.shape), leaf.dtype) for leaf in got]
    return "" if found == list(wanted) else f"shapes and dtypes are {found}, torch gives {wanted}"


def widened(inputs: Tensors) -> Tensors:
    """The inputs in double precision."""
    return tuple(t.double() if t.is_floating_point() else t.clone() for t in inputs)


def largest_error(program: Program, got: Sequence[torch.Tensor]) -> float:
    """The largest error of a result, in units in the last place."""
    inputs = widened(program.inputs) if program.wide else copies(program.inputs)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = tree_leaves(program.call(*inputs))
        sized = wanted if program.sized is None else tree_leaves(program.sized(*widened(program.inputs)))
    if program.chosen is not None:
        got, wanted = (program.chosen(program.inputs, results) for results in (got, wanted))
        sized = wanted if program.sized is None else sized
    return max(map(lambda a, b, c: error(a, b, c, peak=program.peak), got, wanted, sized), default=0.0)


def error(got: torch.Tensor, wanted: torch.Tensor, sized: torch.Tensor, *, peak: bool) -> float:
    """The largest error of one tensor: infinite where a truth value, an integer or a NaN differs."""
    if not wanted.numel():
        return 0.0
    if not got.is_floating_point():
        return 0.0 if torch.equal(got.double(), wanted.double()) else math.inf
    dtype, got, wanted = got.dtype, got.double(), wanted.double()
    beyond = torch.maximum(wanted.abs(), torch.full_like(wanted, first_beyond(dtype)))
    got = torch.where(got.isinf() & wanted.isfinite(), beyond.copysign(got), got)
    same = (got == wanted) | (got.isnan() & ~wanted.isfinite())
    magnitude = torch.maximum(sized.double().abs(), wanted.abs())
    magnitude = magnitude.max().expand_as(wanted) if peak else magnitude
    unit = torch.maximum(unit_of(magnitude, *DL16), unit_of(magnitude, *FORMATS.get(dtype, DL16)))
    off = torch.where(same, 0.0, (got - wanted).abs() / unit)
    return float(torch.nan_to_num(off, nan=math.inf, posinf=math.inf).max())


def first_beyond(dtype: torch.dtype) -> float:
    """The smallest power of two that a dtype cannot hold."""
    return math.ldexp(1.0, math.frexp(torch.finfo(dtype).max)[1]) if dtype in FORMATS else math.inf


def unit_of(magnitude: torch.Tensor, fraction_bits: int, smallest_exponent: int) -> torch.Tensor:
    """The unit in the last place of numbers as large as these."""
    _, exponent = torch.frexp(magnitude)  # magnitude = [0.5, 1) * 2 ** exponent
    exponent = torch.where(magnitude == 0, smallest_exponent, (exponent - 1).clamp(min=smallest_exponent))
    return torch.ldexp(torch.ones_like(magnitude), exponent - fraction_bits)
