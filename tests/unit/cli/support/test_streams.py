"""Processes of the tools: streams that are closed or full, interrupts while a tool loads, memory that is claimed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from spyre_mlir.cli import opt, run
from tests.paths import ROOT

TOOLS = ("opt", "compile", "run", "translate")
TEXT = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { func.return %a : tensor<4xf32> }"


def shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs a line of sh in which `python` is this one."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    line = line.replace("TOOL", f"{sys.executable} -m spyre_mlir.cli.start")
    return subprocess.run(["sh", "-c", line], cwd=cwd, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "main.mlir").write_text(TEXT)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("TOOL opt <&-", "error: standard input: it is closed"),
        ("TOOL translate --check - <&-", "error: standard input: it is closed"),
        ("TOOL opt main.mlir >&-", "error: standard output: it is closed"),
        ("TOOL run main.mlir >&-", "error: standard output: it is closed"),
        ("TOOL opt main.mlir >/dev/full", "error: the results cannot be written: No space left on device"),
        ("TOOL run main.mlir >/dev/full", "error: the results cannot be written: No space left on device"),
    ],
)
def test_a_stream_that_takes_or_gives_nothing(line: str, message: str, folder: Path) -> None:
    done = shell(line, folder)
    assert (done.returncode, done.stderr.strip()) == (1, message)


@pytest.mark.parametrize("tool", [*TOOLS, "lsp"])
def test_a_help_that_cannot_be_written(tool: str, folder: Path) -> None:
    done = shell(f"TOOL {tool} --help >/dev/full", folder)
    assert (done.returncode, done.stderr.strip()) == (
        1,
        "error: the results cannot be written: No space left on device",
    )
    assert "usage: " in shell(f"TOOL {tool} --help", folder).stdout


def test_a_closed_stream_that_is_not_needed(folder: Path) -> None:
    done = shell("TOOL opt main.mlir -o out.mlir >&- <&- 2>&-", folder)
    assert done.returncode == 0
    assert "func.func @main" in (folder / "out.mlir").read_text()


INTERRUPTED = """
import os, signal, sys
from spyre_mlir.cli.start import spyre_{tool}
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background inherit that it is ignored
class Interrupting:
    def find_spec(self, name, path, target=None):
        if name == "{at}":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.exit(spyre_{tool}())
"""


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("at", ["xdsl", "spyre_mlir.errors"])
def test_an_interrupt_while_a_tool_loads(tool: str, at: str) -> None:
    code = INTERRUPTED.format(tool=tool, at=at)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (128 + signal.SIGINT, "error: interrupted\n")


def test_an_argument_larger_than_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "main.mlir"
    path.write_text(TEXT.replace("4xf32", "1000000x1000000xf32"))
    assert run.run([str(path)]) == 1
    assert "more memory than there is: Unable to allocate 7.28 TiB" in capsys.readouterr().err


def test_an_argument_larger_than_the_limit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "main.mlir"
    path.write_text(TEXT.replace("4xf32", "20000x100000xf32"))  # 16 GB of the machine's numbers
    assert run.run([str(path), "--memory-limit", "8G"]) == 1
    assert "more memory than there is" in capsys.readouterr().err


def test_a_limit_is_a_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main(["--memory-limit", "much"]) == 1
    assert "'much' is no size such as 800M or 16G" in capsys.readouterr().err


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000000,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-4,), }",
        "{'descr': 'x', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '<f4'}",
        "(" * 5000,
    ],
)
def test_a_broken_file_of_numbers(header: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = header.encode() + b"\n"
    (folder / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(data).to_bytes(2, "little") + data + bytes(16))
    assert run.run([str(folder / "main.mlir"), "--input", f"a={folder / 'a.npy'}"]) == 1
    error = capsys.readouterr().err
    assert "no .npy file of numbers" in error or "more memory than there is" in error


def test_a_good_file_of_numbers_is_taken(folder: Path) -> None:
    np.save(folder / "a.npy", np.ones(4, np.float32))
    assert run.run([str(folder / "main.mlir"), "--input", f"a={folder / 'a.npy'}"]) == 0


TENSOR = "!spyre.tensor<[64,128] x SEN169_FP16, order [0,1], stick 2, lx>"


def test_a_stick_dimension_that_a_tensor_has_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "t.mlir").write_text(f"func.func private @f({TENSOR})")
    assert opt.main([str(tmp_path / "t.mlir")]) == 1
    assert "the stick dimension is 2, the tensor has rank 2" in capsys.readouterr().err


ALLOC = """
!l = !spyre.tensor<[1000000000000,64] x SEN169_FP16, order [0,1], stick 1, hbm>
func.func @main() {
  %0 = spyre.kernel.alloc : !l
  func.return
}
"""


def test_a_buffer_larger_than_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "main.mlir").write_text(ALLOC)
    assert run.run([str(tmp_path / "main.mlir")]) == 1
    assert "more memory than there is: Unable to allocate 466. TiB" in capsys.readouterr().err


def test_a_loop_that_a_kernel_has_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "tests/lit/transforms/assign_pool_loops.mlir").read_text()
    assert "ins(%2[m, n] : !q)" in text
    (tmp_path / "t.mlir").write_text(text.replace("ins(%2[m, n] : !q)", "ins(%2[m, i64] : !q)"))
    assert opt.main([str(tmp_path / "t.mlir")]) == 1
    assert "index i64 uses 'i64', the loops are m, n" in capsys.readouterr().err
