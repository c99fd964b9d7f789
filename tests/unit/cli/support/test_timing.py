"""--time, --trace, --ideal-cycles and --report of the tools."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spyre_mlir.cli import compile as compile_tool
from spyre_mlir.cli import run as run_tool
from tests.paths import ROOT


def test_run_writes_a_trace_and_a_page(bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, page = tmp_path / "t.json", tmp_path / "r.html"
    assert run_tool.run([str(bundle), "--time", "--trace", str(trace), "--report", str(page)]) == 0
    assert "predicted time, calibrated profile" in capsys.readouterr().out
    files = {e["args"]["file"] for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"}
    assert files == {path.name for path in bundle.glob("sdsc_*.json")}
    text = page.read_text()
    assert "None in the last run" in text and "launch a bundle" in text
    assert all(name in text for name in files)


def test_run_writes_ideal_cycles(bundle: Path, tmp_path: Path) -> None:
    cycles = tmp_path / "cycles.txt"
    assert run_tool.run([str(bundle), "--ideal-cycles", str(cycles)]) == 0
    first, *rows, last = cycles.read_text().splitlines()
    assert first == " Ideal/Total Cycles " and last == "====== Perf Summary End ======"
    assert len(rows) == len(list(bundle.glob("sdsc_*.json")))


def test_without_being_asked_nothing_is_predicted(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool.run([str(bundle)]) == 0
    assert "predicted" not in capsys.readouterr().out


def test_a_page_of_a_module_without_files_is_refused(tmp_path: Path, refused: Callable[..., str]) -> None:
    page, module = tmp_path / "r.html", tmp_path / "m.mlir"
    module.write_text("func.func @main() { func.return }")
    refused(run_tool.run, [module, "--report", page], "holds no SuperDSC", "try: ")
    assert not page.exists()


@pytest.mark.parametrize("option", ["--trace", "--ideal-cycles", "--report"])
def test_a_place_that_cannot_be_written_stops_the_run_first(
    option: str, bundle: Path, tmp_path: Path, refused: Callable[..., str]
) -> None:
    refused(run_tool.run, [bundle, option, tmp_path / "no" / "file"], "No such file or directory")


def test_compile_writes_a_page(saved: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    assert compile_tool.run([str(saved), "-o", str(tmp_path / "out"), "--report", str(page)]) == 0
    assert "batchmatmul" in page.read_text()


@pytest.mark.parametrize(
    "option", [["--report", "r.html"], ["--levels"], ["--device-weights-only"], ["--weights", "w"], ["--host-weights"]]
)
@pytest.mark.parametrize("other", [["--emit", "aten"], ["--target=ktir", "-o", "k.mlir"]])
def test_options_about_a_bundle_are_refused_without_one(
    other: list[str], option: list[str], saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compile_tool.run([str(saved), *other, *option]) == 1
    assert f"{option[0]} is about a bundle" in capsys.readouterr().err


def test_a_page_that_cannot_be_written_stops_compiling_first(
    saved: Path, tmp_path: Path, refused: Callable[..., str]
) -> None:
    output = tmp_path / "out"
    refused(
        compile_tool.run, [saved, "-o", output, "--report", tmp_path / "no" / "r.html"], "No such file or directory"
    )
    assert not output.exists()


@pytest.mark.parametrize("option", [["--trace", "t.json"], ["--time"], ["--probe", "list"], ["--output", "o"]])
def test_bisect_goes_alone(option: list[str], bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tool.run([str(bundle), "--bisect", *option]) == 1
    assert "--bisect compares two runs" in capsys.readouterr().err


def test_ktir_has_no_numerics_to_choose(refused: Callable[..., str]) -> None:
    program = ROOT / "dialects" / "ktdp" / "example.mlir"
    refused(run_tool.run, [program, "--numerics", "device"], "in the types they state", "try: ")
