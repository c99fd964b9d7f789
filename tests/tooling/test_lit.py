"""The lit files run under real lit too, and files that test nothing are found."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.paths import TESTS

ROOT = TESTS.parent
SAMPLE = ("floats.mlir", "locations.mlir", "use_before_definition.mlir")


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"loaded_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


check_lit = load(ROOT / "tools" / "check_lit.py")
runner = load(TESTS / "conftest.py")


def test_real_lit_agrees():
    tools = Path(sys.executable).parent
    if not (tools / "spyre-opt").exists():
        pytest.skip("the project is not installed in this environment, so lit finds no spyre-opt")
    files = [str(TESTS / "lit" / "text" / name) for name in SAMPLE]
    environment = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, str(tools / "lit"), "-v", *files], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"Passed: {len(SAMPLE)}" in done.stdout


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("module {}", "no RUN line"),
        ("// RUN: spyre-opt %s\n// CHECK: x", "CHECK lines that no RUN line"),
        ("// RUN: spyre-opt %s | filecheck %s", "no such line"),
        ("// RUN: spyre-opt %s | filecheck %s --check-prefix OTHER\n// CHECK: x\n// OTHER: y", "has CHECK lines"),
        ("// RUN: not spyre-opt %s\n// expected-error {{x}}", "no RUN line with --verify-diagnostics"),
    ],
)
def test_files_that_test_nothing(text: str, problem: str, tmp_path: Path):
    path = tmp_path / "t.mlir"
    path.write_text(text)
    assert any(problem in found for found in check_lit.problems(path))


def test_file_in_order(tmp_path: Path):
    path = tmp_path / "t.mlir"
    path.write_text("// RUN: spyre-opt %s | filecheck %s\n// CHECK-LABEL: x\n// CHECK-NEXT: y")
    assert check_lit.problems(path) == []


GOOD = "func.func @f() {\n  func.return\n}\n"


@pytest.mark.parametrize(
    ("check", "line", "passes"),
    [
        ("// CHECK: func.return", "spyre-opt %s | filecheck %s", True),
        ("// CHECK: func.missing", "spyre-opt %s | filecheck %s", False),
        ("", "not spyre-opt %s", False),
        ("", "not spyre-opt %s --no-such-flag", True),
        ("", "spyre-opt %s --no-such-flag", False),
        ("// CHECK: no-such-flag", "not spyre-opt %s --no-such-flag 2>&1 | filecheck %s", True),
        ("// CHECK: no-such-flag", "not spyre-opt %s --no-such-flag | filecheck %s", False),
        ("// CHECK: cse", "spyre-opt %s -p 'cse,dce' --print-between-passes 2>&1 | filecheck %s", True),
    ],
)
def test_runner_can_fail(check: str, line: str, passes: bool, tmp_path: Path):
    path = tmp_path / "t.mlir"
    path.write_text(f"{check}\n{GOOD}")
    if passes:
        runner.run_line(line, path, tmp_path)
    else:
        with pytest.raises(runner.RunLineError):
            runner.run_line(line, path, tmp_path)
