"""The rewriter of IR text: one case per op and form, and text in the new spelling stays as it is."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from spyre_mlir.text.render import module_text, parse_module, verify_module
from spyre_mlir.universe import make_context
from tests.paths import ROOT

with pytest.MonkeyPatch.context() as patch:
    patch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    respell: Any = import_module("respell")

CASES = {
    "aten": (
        "%1 = aten.t(%0) {dim = 1 : i64, spyre.wide} : (t) -> t",
        "%1 = aten.t(%0) {dim = 1 : i64} wide : (t) -> t",
    ),
    "aten-alone": ("%1 = aten.t(%0) {spyre.host} : (t) -> t", "%1 = aten.t(%0) host : (t) -> t"),
    "aten-reason": (
        '%1 = aten.call "aten.x"(%0) {self = #aten.operands<1>, spyre.host = "no, {why"} : (t) -> t',
        '%1 = aten.call "aten.x"(%0) {self = #aten.operands<1>} host because "no, {why" : (t) -> t',
    ),
    "aten-note": (
        "%1 = aten.t(%0) {k = 2, a.note} : (t) -> t",
        "%1 = aten.t(%0) {k = 2} attributes {a.note} : (t) -> t",
    ),
    "aten-generic": (
        '%1 = "aten.sum.dim_IntList"(%0) {dim = array<i64: 1, 2>, spyre.wide} : (t) -> t',
        '%1 = "aten.sum.dim_IntList"(%0) <{arguments = {dim = array<i64: 1, 2>}, wide}> : (t) -> t',
    ),
    "call-generic": (
        '%1 = "aten.call"(%0) {callee = "aten.x", k = 2, spyre.host = "no", a.note} : (t) -> t',
        '%1 = "aten.call"(%0) <{callee = "aten.x", arguments = {k = 2}, host, reason = "no"}> {a.note} : (t) -> t',
    ),
    "host": (
        '%1 = spyre.loop.host "aten.x" because "…" (%0) {k = 2, spyre.wide} : (t) -> t',
        '%1 = spyre.loop.host "aten.x" because "…" (%0) {k = 2} wide : (t) -> t',
    ),
    "host-generic": (
        '%1 = "spyre.kernel.host"(%0) <{callee = "aten.x"}> {k = 2} : (t) -> t',
        '%1 = "spyre.kernel.host"(%0) <{callee = "aten.x", arguments = {k = 2}}> : (t) -> t',
    ),
    "apply-generic": (
        '%1 = "spyre.loop.apply"(%0) <{function = "softplus"}> {beta = 2.0 : f64} : (f32) -> f32',
        '%1 = "spyre.loop.apply"(%0) <{function = "softplus", numbers = {beta = 2.0 : f64}}> : (f32) -> f32',
    ),
    "nest": (
        '%1 = spyre.loop.nest [d = 1] ins(%0[d] : t) -> [d] : t reduce "arith.addf" attributes {spyre.wide} {',
        '%1 = spyre.loop.nest [d = 1] ins(%0[d] : t) -> [d] : t reduce "arith.addf" wide {',
    ),
    "nest-generic": (
        '%1 = "spyre.loop.nest"(%0) <{maps = []}> ({\n^bb0(%z: f32):\n}) {spyre.wide} : (t) -> t',
        '%1 = "spyre.loop.nest"(%0) <{maps = [], wide}> ({\n^bb0(%z: f32):\n}) : (t) -> t',
    ),
    "gather": (
        "%1 = spyre.loop.gather [s = 4] rows(%0[s] : t) of axis 0 in %t[0] : t -> [s] : t attributes {from_end}",
        "%1 = spyre.loop.gather [s = 4] rows(%0[s] : t) of axis 0 in %t[0] : t -> [s] : t from_end",
    ),
    "compute": (
        'spyre.kernel.compute "f" [m = 2] ins(%a[m] : t)\n outs(%b : t)\n attributes {op_info = {a = 1}, element = i}',
        'spyre.kernel.compute "f" [m = 2] ins(%a[m] : t)\n outs(%b : t)\n element i op_info {a = 1}',
    ),
    "compute-marks": (
        'spyre.kernel.compute "f" [m = 2] outs(%b[m] : t) attributes {integers, narrowed, rounded, note = 1}',
        'spyre.kernel.compute "f" [m = 2] outs(%b[m] : t) integers narrowed rounded attributes {note = 1}',
    ),
    "compute-generic": (
        '"spyre.kernel.compute"(%a) <{space = #s<m = 2>}> {element = f32} : (t) -> ()',
        '"spyre.kernel.compute"(%a) <{space = #s<m = 2>, element = f32}> : (t) -> ()',
    ),
    "to_device": (
        "%1 = spyre.kernel.to_device %0 {segment = 1 : i64, zero_padding, saturate, from_end = 9 : i64} : t to !d",
        "%1 = spyre.kernel.to_device %0 saturate zero_padding from_end 9 segment 1 : t to !d",
    ),
    "to_device-generic": (
        '%1 = "spyre.kernel.to_device"(%0) {zero_padding} : (t) -> !d',
        '%1 = "spyre.kernel.to_device"(%0) <{zero_padding}> : (t) -> !d',
    ),
    "alloc": ("%1 = spyre.kernel.alloc {segment = 2 : i64} : !d", "%1 = spyre.kernel.alloc segment 2 : !d"),
    "constant": (
        "%1 = spyre.kernel.constant 1.0 : f64 {segment = 2 : i64} : !d",
        "%1 = spyre.kernel.constant 1.0 : f64 segment 2 : !d",
    ),
    "renamed": (
        '%1 = aten.call "spyre::whole_quotient"(%0, %0) {self = #aten.operands<1>} : (t, t) -> t',
        '%1 = aten.call "spyre::floor_divide_integers"(%0, %0) {self = #aten.operands<1>} : (t, t) -> t',
    ),
    "renamed-generic": (
        '%1 = "aten.call"(%0, %0) <{callee = "spyre::whole_quotient"}> : (t, t) -> t',
        '%1 = "aten.call"(%0, %0) <{callee = "spyre::floor_divide_integers"}> : (t, t) -> t',
    ),
    "renamed-host": (
        '%1 = spyre.loop.host "spyre::whole_quotient" because "asked" (%0, %0) : (t, t) -> t',
        '%1 = spyre.loop.host "spyre::floor_divide_integers" because "asked" (%0, %0) : (t, t) -> t',
    ),
    "launch": (
        "spyre.kernel.launch @f(%1) {integer_kernels = array<i64: 1, 2>, elements = {i = 1}, pool_bytes = 8} : !d",
        "spyre.kernel.launch @f(%1) integer_kernels [1, 2] elements {i = 1} pool_bytes 8 : !d",
    ),
}

# Lines of a DSC: places, operands, operation; the text behind them belongs to the operation or the next DSC.
LINKED = {
    "two-places": (
        """superdsc.dsc add {
  superdsc.allocate 0 in lx [mb] start 0
  superdsc.allocate 0 in hbm [mb] start 128 loc("m":1:2)
  superdsc.allocate 1 in lx [mb] start 0
  superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1] order [name]
  superdsc.labeled_ds 1 OUTPUT SEN169_FP16 scale [-2]
  superdsc.compute sfp add SEN169_FP16 [0, 1] -> [1] fields {location = "x"}
}
superdsc.dsc neg {
  superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1]
  superdsc.compute sfp neg SEN169_FP16 [] -> [0]
}""",
        """superdsc.dsc add {
  %a0 = superdsc.allocate 0 in lx [mb] start 0
  %a0_1 = superdsc.allocate 0 in hbm [mb] start 128 loc("m":1:2)
  %a1 = superdsc.allocate 1 in lx [mb] start 0
  %t0 = superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1] at %a0, %a0_1 order [name]
  %t1 = superdsc.labeled_ds 1 OUTPUT SEN169_FP16 scale [-2] at %a1
  superdsc.compute sfp add SEN169_FP16 (%t0, %t1) -> (%t1) fields {location = "x"}
}
superdsc.dsc neg {
  %t0 = superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1]
  superdsc.compute sfp neg SEN169_FP16 () -> (%t0)
}""",
    ),
    "indices": (
        """superdsc.labeled_ds 0 I SEN169_FP16 scale [1]
superdsc.labeled_ds 1 I INT32 scale [1]
superdsc.compute sfp gather SEN169_FP16 [0] -> [0] fields {indices = ["Tensor1-idx1"]}
superdsc.compute sfp gather SEN169_FP16 [0] -> [] fields {indices = []}
superdsc.compute sfp gather SEN169_FP16 [0] -> [0] fields {indices = ["Tensor1-idx1", "Tensor0-idx0"], mine = 1}""",
        """%t0 = superdsc.labeled_ds 0 I SEN169_FP16 scale [1]
%t1 = superdsc.labeled_ds 1 I INT32 scale [1]
superdsc.compute sfp gather SEN169_FP16 (%t0) -> (%t0) indices (%t1)
superdsc.compute sfp gather SEN169_FP16 (%t0) -> () indices ()
superdsc.compute sfp gather SEN169_FP16 (%t0) -> (%t0) indices (%t1, %t0) fields {mine = 1}""",
    ),
    "no-operand": (  # a reference to no operand of the DSC: the reader says so
        "superdsc.compute sfp neg SEN169_FP16 [0] -> [1]",
        "superdsc.compute sfp neg SEN169_FP16 [0] -> [1]",
    ),
}
CASES |= LINKED


@pytest.mark.parametrize("case", CASES)
def test_each_op_has_its_rule(case: str) -> None:
    old, new = CASES[case]
    lines = f"before\n{old}\nbehind {{a = 1}}\n"
    assert respell.respelled(lines) == f"before\n{new}\nbehind {{a = 1}}\n"


@pytest.mark.parametrize("case", CASES)
def test_new_text_stays(case: str) -> None:
    _, new = CASES[case]
    assert respell.respelled(new) == new


def test_every_rule_has_a_case() -> None:
    texts = [old for old, _ in CASES.values()]
    for pattern, rule in respell.PATTERNS:
        assert any(pattern.search(text) for text in texts), rule.op


@pytest.mark.parametrize(
    "text",
    [
        "x = dispatch(aten.ones.default, ([2],), {1: 2})",
        "// CHECK: spyre.kernel.alloc {{.*}} : !d",
        "%1 = aten.relu(%0) : (t) -> t\nfunc.func @f() attributes {a} {",
        "%1 = aten.relu(%0) : (t) -> t } {dim = 1}",
        "func.func @whole_quotient(%whole_quotient: t)",
    ],
)
def test_other_text_stays(text: str) -> None:
    assert respell.respelled(text) == text


def test_a_program_reads_back_from_files_and_from_a_pipe(tmp_path: Path) -> None:
    old = """func.func @main(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
      %0 = aten.softmax.int(%x) {dim = 1 : i64, spyre.wide} : (tensor<4x64xf32>) -> tensor<4x64xf32>
      %1 = "aten.relu"(%0) {spyre.host = "asked"} : (tensor<4x64xf32>) -> tensor<4x64xf32>
      func.return %1 : tensor<4x64xf32>
    }"""
    file = tmp_path / "old.mlir"
    file.write_text(old)
    tool = [sys.executable, str(ROOT / "tools" / "respell.py")]
    piped = subprocess.run(tool, input=old, capture_output=True, text=True, check=True).stdout
    subprocess.run([*tool, str(file)], check=True)
    assert file.read_text() == piped
    module = parse_module(piped, make_context())
    verify_module(module)
    text = module_text(module)
    assert "{dim = 1 : i64} wide :" in text and 'aten.relu(%0) host because "asked" :' in text
