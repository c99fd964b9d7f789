"""The published bundle syntax is read and written as published."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO

import pytest
from xdsl.context import Context
from xdsl.dialects.affine import Affine
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.dialects.scf import Scf
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.dialects.sdscbundle import (
    ArgField,
    DeviceMemAllocateOp,
    InputArgExtractOp,
    InputArgType,
    Sdscbundle,
    SdscExecuteOp,
)
from tests.paths import DATA

REAL = DATA / "superdsc_real/10_bundle.mlir"

# The published form of a two-core add with symbolic addresses and a pool.
SYMBOLIC = """\
module {
  func.func @sdsc_bundle(%p: !sdscbundle.input_arg<index>, %q: !sdscbundle.input_arg<index>) {
    %pool = sdscbundle.device_mem_allocate 65536 bytes : index
    %a = sdscbundle.input_arg_extract value from %p : !sdscbundle.input_arg<index> -> index
    %b = sdscbundle.input_arg_extract value from %q : !sdscbundle.input_arg<index> -> index
    %o = arith.constant 32768 : index
    %a_c1 = arith.addi %a, %o : index
    %p_c1 = arith.addi %pool, %o : index
    sdscbundle.sdsc_execute (%a, %a_c1, %pool, %p_c1) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2, -3, -4]}
    sdscbundle.sdsc_execute (%b) {sdsc_filename="sdsc_1.json", symbol_ids=[-7]}
    return
  }
}
"""

LOOP = """\
#map_0 = affine_map<(d0)[s0] -> (s0 + 65536 * d0)>
module {
  func.func @sdsc_bundle(%p: !sdscbundle.input_arg<index>) {
    %a = sdscbundle.input_arg_extract value from %p : !sdscbundle.input_arg<index> -> index
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = arith.constant 4 : index
    scf.for %i = %c0 to %n step %c1 {
      %addr = affine.apply #map_0(%i)[%a]
      sdscbundle.sdsc_execute (%addr) {sdsc_filename="sdsc_0.json", symbol_ids=[-1]}
    }
    return
  }
}
"""

_SIZE = "!sdscbundle.input_arg<index, granularity=64, max_value=4096>"
SIZES = f"""\
func.func @sdsc_bundle(%n: {_SIZE}) {{
  %g = sdscbundle.input_arg_extract granularity from %n : {_SIZE} -> index
  %m = sdscbundle.input_arg_extract max_value from %n : {_SIZE} -> index
  return
}}
"""


def parse(text: str) -> ModuleOp:
    context = Context()
    for dialect in (Builtin, Func, Arith, Affine, Scf, Sdscbundle):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    module.verify()
    return module


def text_of(module: ModuleOp, *, generic: bool = False) -> str:
    stream = StringIO()
    Printer(stream, print_generic_format=generic).print_op(module)
    return stream.getvalue()


@pytest.mark.parametrize("text", [REAL.read_text(), SYMBOLIC, LOOP, SIZES], ids=["real", "symbolic", "loop", "sizes"])
@pytest.mark.parametrize("generic", [False, True])
def test_published_text_survives(text: str, generic: bool) -> None:
    module = parse(text)
    again = parse(text_of(module, generic=generic))
    assert again.is_structurally_equivalent(module)
    assert text_of(again) == text_of(module)


@pytest.mark.parametrize("text", [REAL.read_text(), SYMBOLIC, LOOP, SIZES], ids=["real", "symbolic", "loop", "sizes"])
def test_our_lines_are_printed_as_published(text: str) -> None:
    lines = [
        line.strip() for line in text.splitlines() if " = sdscbundle." in line or line.strip().startswith("sdscbundle.")
    ]
    printed = [line.strip() for line in text_of(parse(text)).splitlines()]
    assert [line for line in printed if "sdscbundle." in line and not line.startswith("func.func")] == lines


def test_ops_can_be_built() -> None:
    pool = DeviceMemAllocateOp(128)
    execute = SdscExecuteOp("sdsc_0.json", [pool.result], [-1])
    execute.verify()
    assert (execute.ids, execute.sdsc_filename.data) == ((-1,), "sdsc_0.json")
    assert SdscExecuteOp("sdsc_0.json").ids == ()
    assert str(InputArgType(64, 128)) == "!sdscbundle.input_arg<index, granularity=64, max_value=128>"
    assert InputArgExtractOp(pool.result, ArgField.VALUE).field.data == "value"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('sdscbundle.sdsc_execute (%x) {sdsc_filename="a"}', "1 operands for 0 symbol ids"),
        ('sdscbundle.sdsc_execute (%x) {sdsc_filename="a", symbol_ids=[1]}', "must be negative"),
        ('sdscbundle.sdsc_execute (%x, %x) {sdsc_filename="a", symbol_ids=[-1, -1]}', "and differ"),
        ("%y = sdscbundle.device_mem_allocate 0 bytes : index", "0 bytes asked for"),
        ("%y = sdscbundle.device_mem_allocate 16106127361 bytes : index", "can have 1 to 16106127360"),
        (
            "%y = sdscbundle.input_arg_extract granularity from %p : !sdscbundle.input_arg<index> -> index",
            "has no granularity",
        ),
    ],
)
def test_wrong_ops_are_refused(body: str, message: str) -> None:
    text = f"func.func @f(%p: !sdscbundle.input_arg<index>, %x: index) {{ {body} return }}"
    with pytest.raises(VerifyException, match=message):
        parse(text)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("sdscbundle.sdsc_execute () {symbol_ids=[]}", "expected sdsc_filename"),
        ('sdscbundle.sdsc_execute () {sdsc_filename="a", other=1}', "Expected one of"),
        ("%y = sdscbundle.input_arg_extract size from %p : !sdscbundle.input_arg<index> -> index", "Expected one of"),
    ],
)
def test_wrong_syntax_is_refused(body: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse(f"func.func @f(%p: !sdscbundle.input_arg<index>) {{ {body} return }}")


def test_dialects_start_without_numpy_and_torch() -> None:
    code = (
        "import sys, spyre_mlir.dialects.superdsc, spyre_mlir.dialects.sdscbundle, spyre_mlir.backend.read;"
        "print([name for name in ('numpy', 'torch', 'msgspec') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
