# ruff: noqa: E501 - rows of tables
"""What looser interpreters accept silently, as a table: each probe is refused before it runs, or is a fault.

The same probes on KTIR programs are in tests/end_to_end/ktir/test_faults.py; two have a meaning there only:
the set of points of an access tile, and the extent of a dynamic view.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.end_to_end.tools.fault_programs import LX, OUT, ROW, At, X, kernel, kernels, lx, out, pool, program, sdsc, x

FAULT, REFUSED, UNSUPPORTED = 3, 1, 2
NOWHERE = 3 << 34
IN_STEP = sdsc(0, "exp", x, lx)
LOOP = """
  %lower = arith.constant 0 : index
  %upper = arith.constant 4 : index
  %step = arith.constant STEP : index
  scf.for %i = %lower to %upper step %step {
  }"""


def spread(target: At) -> str:
    """32 cores, each with the same four rows to read, and rows of the target to write."""
    one = At(X, starts=(X,) * 32)
    return program(sdsc(0, "exp", one, target, rows=128, splits=(32, 1)))


NARROW = "!n = !spyre.tensor<[4, 20] x SEN169_FP16, order [1, 0], stick 1, hbm>\n"
WIDE = "!w = !spyre.tensor<[4, 64] x IEEE_FP32, order [1, 0], stick 1, hbm>\n"
ODD = "!z = !spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, lxx>\n"
INTO_NARROW = 'spyre.kernel.compute "exp" [m = 4, n = 128] ins(%t[m, 0] : !t) outs(%n[m, n] : !n)'
ADD_WIDE = 'spyre.kernel.compute "add" [m = 4, n = 64] ins(%t[m, n] : !t, %w[m, n] : !w) outs(%o[m, n] : !t)'
IF = """
  %true = arith.constant true
  scf.if %true {
  } else {
  }"""

PROBES = {
    "load beyond the view, inside the allocation": (kernels(kernel("exp", "%t", "%o", read="m + 1")), REFUSED, "index m + 1 runs over 1 to 4, dimension 0 has 4"),
    "load beyond the allocation": (program(sdsc(0, "exp", At(X + ROW), out)), FAULT, "out-of-bounds: "),
    "store beyond the allocation": (program(sdsc(0, "exp", x, At(OUT + ROW))), FAULT, "out-of-bounds: "),
    "store to an address nobody allocated": (program(sdsc(0, "exp", x, At(NOWHERE))), FAULT, "out-of-bounds: "),
    "32 cores write different values to one place": (spread(At(OUT, starts=(OUT,) * 32)), FAULT, "double-write: cores 0 and 1 both write"),
    "core 1 reads what core 0 writes, no sync": (program(sdsc(0, "exp", At(X, starts=(X, X)), At(X, starts=(X, OUT)))), FAULT, "read-write-race: "),
    "core 0 reads what core 1 writes, no sync": (program(sdsc(0, "exp", At(X, starts=(X, X)), At(X, starts=(OUT, X)))), FAULT, "read-write-race: "),
    "core 1 wants what core 0 has in its scratchpad": (program(IN_STEP, sdsc(1, "neg", lx, At(OUT, starts=(OUT + 2 * ROW, OUT)), fields='fields {core_to_slice = {"0": {"mb": 1, "out": 0}, "1": {"mb": 0, "out": 0}}}')), FAULT, "foreign-slice: "),
    "load and store overlap in place": (program(sdsc(0, "exp", x, At(X, starts=(X + ROW, X + 3 * ROW), step=0), rows=4)), FAULT, "read-write-race: "),
    "empty data used": (program(sdsc(0, "exp", out, out)), FAULT, "uninitialised-read: "),
    "empty data used by a kernel": (kernels(kernel("exp", "%l", "%o")), FAULT, "uninitialised-read: "),
    "an LX view at 3 MB of 2 MB": (program(sdsc(0, "exp", x, At(3 << 20, LX))), FAULT, "lx-overflow: "),
    "an LX view over live tensors": (program(IN_STEP, sdsc(1, "abs", x, At(ROW, LX)), sdsc(2, "neg", lx, out)), FAULT, "stale-read: 1:abs has overwritten a part of what 0:exp wrote"),
    "an LX buffer over a live one": (kernels(kernel("exp", "%t", "%l"), kernel("abs", "%t", "%m"), kernel("neg", "%l", "%o")), FAULT, "overwritten-read: "),
    "two formats mixed": (WIDE + kernels("%w = spyre.kernel.constant 1.0 : f32 : !w", ADD_WIDE), FAULT, "wrong-format: "),
    "two formats mixed in a file": (program(sdsc(0, "add", x, At(X, format="IEEE_FP32"), out)), REFUSED, "expected the 32 elements of a IEEE_FP32 stick"),
    "read in another format": (program(sdsc(0, "exp", At(X, format="BFLOAT16"), out)), FAULT, "wrong-format: read as BFLOAT16, last written as SEN169_FP16"),
    "a wrong result type": (kernels().replace("!t to tensor<4x64xf32> loc", "!t to tensor<4x32xf32> loc"), REFUSED, "operand is used with type tensor<4x64xf32>"),
    "a name defined twice": (kernels("%l = spyre.kernel.alloc : !t"), REFUSED, "SSA value %l is already defined"),
    "128 elements stored through a tile of 20": (NARROW + kernels("%n = spyre.kernel.alloc : !n", INTO_NARROW), REFUSED, "index n runs over 0 to 127, dimension 1 has 64"),
    "a set of 100 in a tile of 4": (kernels(kernel("exp", "%t", "%o", "m = 100")), REFUSED, "index m runs over 0 to 99, dimension 0 has 4"),
    "64 cores": (program(sdsc(0, "exp", At(X, step=ROW), out, rows=64, splits=(64, 1))), REFUSED, "numCoresUsed_ is 64, the card has 32 cores"),
    "an unaligned base": (program(sdsc(0, "exp", At(X + 64), out)), REFUSED, "which is no multiple of 128 bytes"),
    "an unaligned base, bound when it runs": (program(sdsc(0, "exp", At(-1, symbolic=True), At(-3, symbolic=True)), bound=(X + 64, X + 2 * ROW + 64, OUT, OUT + 2 * ROW)), FAULT, "misaligned: "),
    "a loop with step 0": (kernels(LOOP.replace("STEP", "0")), FAULT, "loop-step: a loop with step 0 has no end"),
    "a loop with step -1": (kernels(LOOP.replace("STEP", "-1")), FAULT, "loop-step: a loop with step -1 has no end"),
    "an else region": (program(sdsc(0, "exp", x, out)).replace("func.return\n", f"{IF}\n func.return\n", 1), UNSUPPORTED, "scf.if is no part of a bundle"),
    "a memory that is not there": (ODD + kernels("%z = spyre.kernel.alloc : !z"), REFUSED, "lxx"),
}  # fmt: skip

Run = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("name", PROBES)
def test_probe(spyre_run: Run, name: str) -> None:
    text, code, part = PROBES[name]
    got, shown, errors = spyre_run(text)
    assert (got, shown) == (code, ""), errors
    assert part in errors


def test_further_arguments(spyre_run: Run) -> None:
    code, _, errors = spyre_run(program(sdsc(0, "exp", x, out)), "--input", "y=y.npy")
    assert code == REFUSED
    assert "the program has no argument 'y'" in errors


def test_overflow_is_counted_or_a_fault(spyre_run: Run) -> None:
    text = program(sdsc(0, "mul", x, x, pool), sdsc(1, "mul", pool, x, out))
    code, shown, _ = spyre_run(text, "--numerics", "device", value=2e5)
    assert code == 0
    assert "overflow: 256 results of 0:mul are beyond DLFloat16" in shown
    code, _, errors = spyre_run(program(sdsc(0, "reciprocal", x, out)), "--nan", "fault", value=0.0)
    assert code == FAULT
    assert "nan-born: 256 results are infinite or NaN, and no operand is" in errors
