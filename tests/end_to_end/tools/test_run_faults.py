# ruff: noqa: E501 - rows of tables
"""Every kind of fault, planted by hand in a program's text: `spyre-run` ends with exit code 3 and says what and where.

A program is a few SuperDSCs on two cores, with two rows of a tensor of four sticks each. x is argument 1, the result
is argument 2, and the pool is segment 0; segments are 16 GiB apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from spyre_mlir.cli import run as run_tool
from tests.end_to_end.tools.fault_programs import (
    LX,
    LX_BYTES,
    OUT,
    POOL,
    ROW,
    At,
    X,
    kernel,
    kernels,
    lx,
    out,
    pool,
    program,
    sdsc,
    x,
)

Run = Callable[..., tuple[int, str, str]]

INTO_LX, FROM_LX = sdsc(0, "exp", x, lx), sdsc(1, "neg", lx, out)
SWAPPED = 'fields {core_to_slice = {"0": {"mb": 1, "out": 0}, "1": {"mb": 0, "out": 0}}}'
TWICE = 'fields {core_to_slice = {"0": {"mb": 0, "out": 0}, "1": {"mb": 0, "out": 0}}}'
ABSENT = 'fields {core_to_slice = {"0": {"mb": 0, "out": 0}, "1": {"mb": 2, "out": 0}}}'

PLANTED = {
    "uninitialised read": (program(sdsc(0, "add", x, out, out)), "uninitialised-read", "0:add, Tensor1, core 0, bytes 0x800000000..0x800000002, model.py:0"),
    "out of bounds": (program(sdsc(0, "exp", At(X + 3 * ROW), out)), "out-of-bounds", "0:exp, Tensor0, core 0, bytes 0x400000180..0x400000280, model.py:0"),
    "out of bounds, of one core": (program(sdsc(0, "exp", At(X, starts=(X, X + 9 * ROW)), out)), "out-of-bounds", "0:exp, Tensor0, core 1, bytes 0x400000480..0x400000580"),
    "a write out of bounds": (program(sdsc(0, "exp", x, At(OUT + 3 * ROW))), "out-of-bounds", "0:exp, Tensor1, core 0, bytes 0x800000180..0x800000280, model.py:0"),
    "misaligned": (program(sdsc(0, "exp", At(-1, symbolic=True), At(-3, symbolic=True)), bound=(X, X + 2 * ROW, OUT, OUT + ROW + 64)), "misaligned", "0:exp, Tensor1, core 1"),
    "LX overflow": (program(sdsc(0, "exp", x, At(LX_BYTES - ROW, LX)), FROM_LX), "lx-overflow", f"0:exp, Tensor1, core 0, bytes {LX_BYTES - ROW:#x}"),
    "LX before the bundle": (program(INTO_LX, sdsc(1, "neg", At(512, LX), out)), "stale-read", "1:neg, Tensor0, core 0, bytes 0x2000000200"),
    "LX use after free": (program(INTO_LX, sdsc(1, "abs", x, At(ROW, LX)), sdsc(2, "neg", lx, out)), "stale-read", "2:neg, Tensor0, core 0, bytes 0x2000000000..0x2000000002, model.py:20"),
    "overlap of live buffers in the pool": (program(sdsc(0, "exp", x, pool), sdsc(1, "abs", x, At(POOL + ROW)), sdsc(2, "neg", pool, out)), "stale-read", "2:neg, Tensor0, core 0, bytes 0x0..0x2, model.py:20"),
    "write/write race": (program(sdsc(0, "exp", x, At(OUT, starts=(OUT, OUT)))), "double-write", "0:exp, Tensor1, core 1, bytes 0x800000000"),
    "read/write race": (program(sdsc(0, "exp", x, At(X, starts=(X + 2 * ROW, X)))), "read-write-race", "0:exp, Tensor1, core 1, bytes 0x400000000..0x400000002, model.py:0"),
    "foreign slice": (program(INTO_LX, sdsc(1, "neg", lx, At(OUT, starts=(OUT + 2 * ROW, OUT)), fields=SWAPPED)), "foreign-slice", "1:neg, Tensor0, core 1"),
    "span": (program(sdsc(0, "exp", x, out, rows=1 << 22, splits=(1, 1))), "span", "0:exp, Tensor0, core 0, bytes 0x400000000..0x420000000, model.py:0"),
    "nothing written": (program(sdsc(0, "exp", x, pool)), "unwritten-output", "op from_device, result 0, bytes 0x800000000..0x800000002, model.py:99"),
    "part of an output": (program(sdsc(0, "exp", At(X, step=ROW), At(OUT, step=ROW), rows=2)), "unwritten-output", "result 0, bytes 0x800000100..0x800000102, model.py:99"),
    "NaN born here": (program(sdsc(0, "log", x, pool), sdsc(1, "exp", pool, out)), "nan-born", "0:log, Tensor1, core 0, bytes 0x0..0x2, model.py:0"),
    "order of launches": (program(INTO_LX, FROM_LX, launches=(1, 0)), "stale-read", "1:neg, Tensor0, core 0, bytes 0x2000000000"),
    "another format": (program(sdsc(0, "exp", At(X, format="BFLOAT16"), out)), "wrong-format", "0:exp, Tensor0, core 0, bytes 0x400000000..0x400000002"),
}  # fmt: skip
# What the verifier and the reader of files see before anything runs.
REFUSED = {
    "misaligned": (program(sdsc(0, "exp", At(X + 64), out)), "which is no multiple of 128 bytes; the stick starts at 17179869184"),
    "two cores with one slice": (program(sdsc(0, "exp", x, out, fields=TWICE)), "expected different slices for every core"),
    "a slice that is not there": (program(sdsc(0, "exp", x, out, fields=ABSENT)), "expected a slice from 0 to 1, got 2"),
    "64 cores": (program(sdsc(0, "exp", At(X, step=ROW), out, rows=64, splits=(64, 1))), "numCoresUsed_ is 64, the card has 32 cores"),
    "two formats": (program(sdsc(0, "add", x, At(X, format="IEEE_FP32"), out)), "expected the 32 elements of a IEEE_FP32 stick, got [64]"),
}  # fmt: skip
CORRECT = {
    "through LX": program(INTO_LX, FROM_LX),
    "through the pool": program(sdsc(0, "exp", x, pool), sdsc(1, "neg", pool, out)),
    "in place": program(sdsc(0, "exp", x, x), sdsc(1, "neg", x, out)),
}


@pytest.mark.parametrize("name", CORRECT)
def test_a_correct_program_raises_nothing(spyre_run: Run, name: str) -> None:
    for mode in ("raise", "collect"):
        code, shown, errors = spyre_run(CORRECT[name], "--on-fault", mode, "--nan", "fault", "--numerics", "exact")
        assert (code, errors) == (0, "")
        assert shown == "result0: 4x64, min -0.367879, mean -0.367879, max -0.367879\n"


def test_numbers_are_those_of_the_card_by_default(spyre_run: Run) -> None:
    # 1/e is 1.4715 / 4, and a DLFloat16 has nine bits behind the point: 241 of 512.
    for flags in ([], ["--numerics", "device"]):
        _, shown, _ = spyre_run(CORRECT["through LX"], *flags)
        assert f"mean {-(1 + 241 / 512) / 4:.6g}, max" in shown


@pytest.mark.parametrize("numerics", ["exact", "device"])
@pytest.mark.parametrize("name", PLANTED)
def test_planted(spyre_run: Run, name: str, numerics: str) -> None:
    text, kind, where = PLANTED[name]
    code, shown, errors = spyre_run(text, "--nan", "fault", "--numerics", numerics)
    assert (code, shown) == (3, ""), errors
    assert errors.startswith(f"error: [SPY-F001] {kind}: ")
    assert where in errors
    assert re.search(r"model\.py:\d+\n", errors)
    if kind != "unwritten-output":
        assert re.search(r"at: sdsc_\d\.json: op ", errors)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_it_runs(spyre_run: Run, name: str) -> None:
    text, part = REFUSED[name]
    code, shown, errors = spyre_run(text)
    assert (code, shown) == (1, "")
    assert part in errors


def test_collect_lists_all_and_runs_to_the_end(spyre_run: Run) -> None:
    text = program(sdsc(0, "add", x, out, pool), sdsc(1, "exp", At(X + 3 * ROW), out), sdsc(2, "neg", x, out))
    code, shown, errors = spyre_run(text, "--on-fault", "collect")
    lines = shown.splitlines()
    assert (code, errors, lines[0]) == (3, "", "result0: 4x64, min 1, mean 1, max 1")
    assert [line.partition(":")[0] for line in lines[1:]] == ["uninitialised-read", "out-of-bounds"]
    assert lines[1].endswith("at sdsc_0.json: op 0:add, Tensor1, core 0, bytes 0x800000000..0x800000002, model.py:0")
    assert "model.py:10" in lines[2]


def test_warn_says_them_on_the_way_too(spyre_run: Run) -> None:
    code, shown, errors = spyre_run(program(sdsc(0, "add", x, out, pool), sdsc(1, "neg", x, out)), "--on-fault", "warn")
    assert code == 3
    assert errors.startswith("warning: [SPY-F001] uninitialised-read: ")
    assert "uninitialised-read: 1 sticks were never written in lane 0" in shown


def test_overflows_are_counted_and_open_questions_named(spyre_run: Run) -> None:
    text = program(sdsc(0, "mul", x, x, pool), sdsc(1, "exp", x, out))
    code, shown, errors = spyre_run(text, "--numerics", "device", "-v", value=1e9)
    assert code == 0
    # The exponential is infinite in float32 already.
    assert "\noverflow: 256 results of 0:mul are beyond DLFloat16, the largest " in shown
    assert shown.endswith(", sdsc_0.json, Tensor2\n")
    assert "info: depends on an open question: arithmetic: 1:exp\n" in errors
    assert "info: depends on an open question: overflow: 0:mul\n" in errors


def test_a_file_on_disk_names_the_line_of_the_model(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The files have no lines; `bundle.mlir` and its manifest bring them back."""
    import inspect

    from tests.unit.cli import conftest

    lines, first = inspect.getsourcelines(conftest.Layer.forward)
    path = bundle / "sdsc_0.json"
    name = re.search(r'"(\d+_\w+)": ', path.read_text())
    assert name is not None
    text = path.read_text()
    moved = re.sub(r'"-1"', '"-9999"', text)
    assert moved != text
    path.write_text(moved)
    assert run_tool.run([str(bundle)]) == 1
    assert "symbols-bound: " in capsys.readouterr().err
    assert run_tool.run([str(bundle), "--no-check"]) == 3
    errors = capsys.readouterr().err
    assert "unbound-symbol" in errors
    assert f"at: sdsc_0.json: op {name[1].replace('_', ':')}, " in errors
    assert f"conftest.py:{first + len(lines) - 1}" in errors


FREE = "spyre.kernel.free %l : !l"
EXP = kernel("exp", "%t", "%l")
AT_KERNELS = {
    "uninitialised read": (kernels(kernel("exp", "%o", "%o")), "uninitialised-read: exp computes element [m = 0, n = 0]", 0),
    "uninitialised LX": (kernels(kernel("exp", "%l", "%o")), "uninitialised-read: exp computes element [m = 0, n = 0]", 0),
    "LX use after free": (kernels(EXP, FREE, kernel("neg", "%l", "%o")), "use-after-free: input 0 was freed", 20),
    "freed twice": (kernels(EXP, FREE, FREE), "double-free: ", 20),
    "overlap of live buffers": (kernels(EXP, kernel("abs", "%t", "%m"), kernel("neg", "%l", "%o")), "overwritten-read: input 0 is in bytes 0 to 256 of the scratchpads, which abs", 20),
    "overlap of input and output": (kernels(EXP, kernel("abs", "%l", "%m")), "read-write-race: abs reads bytes 0 to 256 of the scratchpads and writes into them out of step", 10),
    "double write": (kernels(kernel("exp", "%t", "%o", write="0")), "double-write: exp writes the same element for every m", 0),
    "nothing written": (kernels(), "unwritten-output: the source: element [0, 0] has no value (256 such", 99),
    "part of an output": (kernels(kernel("exp", "%t", "%o", "m = 2")), "unwritten-output: the source: element [2, 0] has no value (128 such", 99),
}  # fmt: skip
REFUSED_KERNELS = {
    "load beyond the view": (kernels(kernel("exp", "%t", "%o", read="m + 1")), "index m + 1 runs over 1 to 4, dimension 0 has 4"),
    "store beyond the view": (kernels(kernel("exp", "%t", "%o", write="m + 1")), "index m + 1 runs over 1 to 4, dimension 0 has 4"),
    "LX overflow": (kernels("%z = spyre.kernel.alloc at 2097024 : i64 : !l", kernel("exp", "%t", "%z")), "bytes 2097024 to 2097280 of the scratchpad: a core has 1589376"),
    "unaligned base": (kernels("%z = spyre.kernel.alloc at 64 : i64 : !l"), "byte 64 is not on a stick of 128 bytes"),
    "64 cores": (kernels(kernel("exp", "%t", "%o", "m = 4 over 64")), "m has 4 elements, not divisible over 64 cores"),
    "a name defined twice": (kernels("%l = spyre.kernel.alloc : !t"), "%l"),
    "a wrong type": (kernels(kernel("exp", "%t", "%o").replace("ins(%t[m, n] : !t)", "ins(%t[m, n] : !l)")), "%t"),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_KERNELS)
def test_planted_between_kernels(spyre_run: Run, name: str) -> None:
    text, message, line = AT_KERNELS[name]
    code, shown, errors = spyre_run(text)
    assert (code, shown) == (3, ""), errors
    assert errors.startswith(f"error: [SPY-F001] {message}")
    assert f'"model.py":{line}:0' in errors


@pytest.mark.parametrize("name", REFUSED_KERNELS)
def test_refused_between_kernels(spyre_run: Run, name: str) -> None:
    text, part = REFUSED_KERNELS[name]
    code, shown, errors = spyre_run(text)
    assert (code, shown) == (1, "")
    assert part in errors


def test_faults_between_kernels_are_placed() -> None:
    """What a tool reads: the place in fields, with the line of the model alone."""
    from spyre_mlir.errors import MachineFault
    from spyre_mlir.machine.levels.run import run_function
    from spyre_mlir.text.render import parse_module
    from spyre_mlir.universe import make_context

    text = AT_KERNELS["overlap of live buffers"][0]
    with pytest.raises(MachineFault) as caught:
        run_function(parse_module(text, make_context()), [np.ones((4, 64))])
    place = caught.value.place
    assert (place.op, place.tensor, place.low, place.high) == ("neg", "input 0", 0, 256)
    assert (place.level, place.line) == ("spyre.kernel", "model.py:20")
