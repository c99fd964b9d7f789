"""LLVM's mlir-opt reads what we print at every level, and we read back what it prints."""

import subprocess
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.cli import compile as compile_tool
from spyre_mlir.pipeline import LEVELS
from spyre_mlir.text.render import module_text, parse_module, verify_module
from spyre_mlir.universe import make_context
from tests.conftest import external_tool
from tests.paths import ROOT

MLIR_OPT = external_tool("mlir-opt")
EXAMPLES = [
    *sorted(ROOT.glob("examples/*.mlir")),
    ROOT / "tests/data/superdsc_real/10_bundle.mlir",
    *sorted(ROOT.glob("tests/data/ktir/*.mlir")),
]

pytestmark = pytest.mark.skipif(MLIR_OPT is None, reason="needs mlir-opt, mlir-opt-22, torch-mlir or XDSL_MLIR_OPT")


def read(text: str) -> ModuleOp:
    module = parse_module(text, make_context())
    verify_module(module)
    return module


def through_mlir_opt(text: str) -> str:
    done = subprocess.run(
        [str(MLIR_OPT), "--allow-unregistered-dialect", "--mlir-print-op-generic"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check(text: str) -> None:
    module = read(text)
    again = read(through_mlir_opt(module_text(module, generic=True)))
    assert again.is_structurally_equivalent(module)


@pytest.mark.parametrize("level", LEVELS)
def test_levels(level: str, saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compile_tool.run([str(saved), "--emit", level]) == 0
    check(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["bundle.mlir", "program.mlir"])
def test_files_of_a_bundle(name: str, pristine: Path) -> None:
    check((pristine / name).read_text())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples(path: Path) -> None:
    check(path.read_text())


@pytest.mark.parametrize("generation", ["TS25", "TSNEW"])
def test_generations(generation: str, saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compile_tool.run([str(saved), "--emit", "superdsc", "--sdsc-version", generation]) == 0
    check(capsys.readouterr().out)


def test_the_comparison_sees_a_difference() -> None:
    one, other = (f"func.func @f() -> i32 {{ %0 = arith.constant {n} : i32 func.return %0 : i32 }}" for n in (1, 2))
    assert not read(one).is_structurally_equivalent(read(other))
