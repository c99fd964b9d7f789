"""IRDL files of dialects: what they state, and that xDSL and LLVM's mlir-opt read them."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path
from types import ModuleType

import pytest
from xdsl.context import Context
from xdsl.dialects.irdl import IRDL, DialectOp
from xdsl.dialects.irdl.irdl import AttributeOp, OperationOp, TypeOp
from xdsl.parser import Parser

from spyre_mlir.cli import opt
from spyre_mlir.dialects import get_all_dialects
from spyre_mlir.dialects.ktdp import Ktdp
from spyre_mlir.dialects.sdscbundle import Sdscbundle
from tests.conftest import external_tool
from tests.paths import ROOT

MLIR_OPT = external_tool("mlir-opt")
DIALECTS = [Sdscbundle, Ktdp]
needs_mlir_opt = pytest.mark.skipif(MLIR_OPT is None, reason="needs mlir-opt, mlir-opt-22, torch-mlir or XDSL_MLIR_OPT")


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("irdl_files", ROOT / "tools" / "irdl_files.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


irdl_files = load()


def file_of(name: str) -> Path:
    return ROOT / "dialects" / name / f"{name}.irdl.mlir"


def mlir_opt(name: str, text: str) -> subprocess.CompletedProcess[str]:
    command = [str(MLIR_OPT), f"--irdl-file={file_of(name)}"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def test_dialects_whose_names_irdl_has() -> None:
    # Ops of aten and spyre have dots in their names, a type of superdsc is called as an op, and spyreop has no ops.
    admitted = [name for name, make in get_all_dialects().items() if irdl_files.is_admitted(make())]
    assert sorted(admitted) == ["control", "ktdp", "sdscbundle"]
    assert sorted(irdl_files.irdl_files()) == [
        "dialects/control/control.irdl.mlir",
        "dialects/ktdp/ktdp.irdl.mlir",
        "dialects/sdscbundle/sdscbundle.irdl.mlir",
    ]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.name)
def test_every_op_type_and_attribute_is_defined(dialect) -> None:
    context = Context()
    context.load_dialect(IRDL)
    module = Parser(context, file_of(dialect.name).read_text(), "f").parse_module()
    module.verify()
    (defined,) = module.ops
    assert isinstance(defined, DialectOp)
    named = {f"{dialect.name}.{op.sym_name.data}" for op in defined.body.ops if isinstance(op, OperationOp)}
    assert named == {op.name for op in dialect.operations}
    others = {f"{dialect.name}.{op.sym_name.data}" for op in defined.body.ops if isinstance(op, TypeOp | AttributeOp)}
    assert others == {one.name for one in dialect.attributes}


def test_the_definition_of_an_op() -> None:
    assert """\
  irdl.operation @input_arg_extract {
    %o0 = irdl.base @sdscbundle::@input_arg
    irdl.operands(arg: single %o0)
    %r0 = irdl.any
    irdl.results(result: single %r0)
    %a0 = irdl.any
    irdl.attributes {"field" = %a0}
  }
""" in file_of("sdscbundle").read_text()


@needs_mlir_opt
@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda one: one.name)
def test_mlir_opt_loads_the_file(dialect) -> None:
    done = mlir_opt(dialect.name, "")
    assert done.returncode == 0, done.stderr


@needs_mlir_opt
def test_mlir_opt_checks_a_bundle_by_it(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--print-op-generic", "--print-no-properties"]
    assert opt.main([str(ROOT / "tests/data/superdsc_real/10_bundle.mlir"), *flags]) == 0
    done = mlir_opt("sdscbundle", capsys.readouterr().out)
    assert done.returncode == 0, done.stderr
    assert '"sdscbundle.sdsc_execute"() {sdsc_filename = "sdsc_1_add.json"}' in done.stdout
    nameless = mlir_opt("sdscbundle", '"sdscbundle.sdsc_execute"() : () -> ()')
    assert nameless.returncode == 1
    assert "sdsc_filename" in nameless.stderr
    unknown = mlir_opt("sdscbundle", '"sdscbundle.sdsc_run"() : () -> ()')
    assert unknown.returncode == 1


@needs_mlir_opt
def test_mlir_opt_checks_operands_by_it() -> None:
    assert mlir_opt("ktdp", '%0 = "ktdp.get_compute_tile_id"() : () -> index').returncode == 0
    wrong = mlir_opt("ktdp", '%0 = "test.a"() : () -> index\n"ktdp.yield_partial"(%0, %0) : (index, index) -> ()')
    assert wrong.returncode == 1
