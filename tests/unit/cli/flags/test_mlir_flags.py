"""Command lines of mlir-opt, in our spelling, and flags that xdsl-opt lacks."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from spyre_mlir.cli import opt
from spyre_mlir.cli.flags.mlir_flags import add_flags, as_our_flags

PROGRAM = """
func.func @main(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %0 = aten.exp(%x) : (tensor<4x64xf32>) -> tensor<4x64xf32>
  func.return %0 : tensor<4x64xf32>
}
"""
PASSES = ["canonicalize", "cse", "specialize-shapes"]


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        ("f.mlir --canonicalize --cse", "-p canonicalize,cse f.mlir"),
        ("f.mlir -p cse -p canonicalize", "-p cse,canonicalize f.mlir"),
        ("--passes=cse f.mlir --canonicalize -p cse,cse", "-p cse,canonicalize,cse,cse f.mlir"),
        ("f.mlir -pcse -pcanonicalize", "-p cse,canonicalize f.mlir"),
        ("--passes=cse f.mlir", "-p cse f.mlir"),
        ("--passes-of-ours f.mlir", "--passes-of-ours f.mlir"),
        ("f.mlir --specialize-shapes=s0=33", "-p specialize-shapes{s0=33} f.mlir"),
        ("f.mlir --mlir-print-op-generic --mlir-timing", "f.mlir --print-op-generic --time-passes"),
        ("f.mlir --mlir-print-ir-after=cse", "f.mlir --print-ir-after=cse"),
        ("f.mlir --verify-each=false", "f.mlir --no-verify-each"),
        ("f.mlir -o cse", "f.mlir -o cse"),
        ("f.mlir -- --cse", "f.mlir -- --cse"),
        ("f.mlir -p", "f.mlir -p"),
        ("f.mlir --unknown", "f.mlir --unknown"),
    ],
)
def test_spellings(words: str, ours: str) -> None:
    assert as_our_flags(words.split(), PASSES) == ours.split()


def test_passes_run_in_the_order_of_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(PROGRAM)
    words = ["--decompose-aten", "--convert-aten-to-spyre-loop", "--mlir-print-ir-after-all", str(path)]
    assert opt.main(words) == 0
    out, err = capsys.readouterr()
    assert "spyre.loop.nest" in out
    assert err.index("decompose-aten") < err.index("convert-aten-to-spyre-loop")
    assert opt.main([str(path), "-p", "decompose-aten", "-p", "convert-aten-to-spyre-loop"]) == 0
    assert capsys.readouterr().out == out


@pytest.mark.parametrize(
    ("words", "ran"),
    [
        ("-p cse -p dce", ["cse", "dce"]),
        ("-p dce -p cse,dce --passes canonicalize", ["dce", "cse", "dce", "canonicalize"]),
        ("-p cse --dce -p cse", ["cse", "dce", "cse"]),
    ],
)
def test_all_of_several_p_run_in_order(
    words: str, ran: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "f.mlir"
    path.write_text(PROGRAM)
    assert opt.main([str(path), *words.split(), "--mlir-print-ir-after-all"]) == 0
    assert re.findall(r"IR Dump After (\S+)", capsys.readouterr().err) == ran


def test_dialects_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main(["--show-dialects"]) == 0
    assert "aten, " in capsys.readouterr().out


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_flags(parser)
    return parser.parse_args(words)


def test_passes_are_verified_one_by_one_unless_told_otherwise() -> None:
    assert parsed().verify_each is True
    assert parsed("--no-verify-each").verify_each is False


def test_several_passes_may_be_printed_after() -> None:
    assert parsed().print_ir_after == []
    assert parsed("--print-ir-after", "cse", "--print-ir-after", "dce").print_ir_after == ["cse", "dce"]


def test_lists_go_to_a_file() -> None:
    given = parsed("--list-ops", "--json", "-")
    assert (given.list_ops, given.list_passes, given.json) == (True, False, "-")
