"""The tools by one name."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import spyre_mlir
from spyre_mlir.cli.start import TOOLS
from spyre_mlir.cli.tools import main
from tests.paths import ROOT

FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
OPTIONS = ROOT / "docs" / "reference" / "options.md"


def test_without_a_tool_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    out = capsys.readouterr().out
    assert f"spyre-mlir {spyre_mlir.__version__}" in out
    assert all(f"  {name} " in out for name in TOOLS)


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_has_a_version(tool: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([tool, "--version"]) == 0
    assert capsys.readouterr().out.startswith(f"spyre-{tool} {spyre_mlir.__version__}")


def test_another_tool(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimise"]) == 1
    assert capsys.readouterr().err.startswith("error: there is no tool optimise")


@pytest.mark.parametrize("tool", TOOLS)
def test_every_flag_is_on_the_page_of_its_tool(
    tool: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # lines may break within names
    assert main([tool, "--help"]) == 0
    flags = set(FLAG.findall(capsys.readouterr().out))
    assert "--print-completion" in flags
    page = (ROOT / "docs" / "tools" / f"spyre-{tool}.md").read_text() + OPTIONS.read_text()
    assert flags - set(FLAG.findall(page)) == set()


WITHOUT_TORCH = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Hidden())
from spyre_mlir.cli.compile import run

sys.exit(run([sys.argv[1], "--emit", "aten"]))
"""


NAMES_WITHOUT_TORCH = (
    WITHOUT_TORCH.partition("from spyre_mlir")[0]
    + """
import spyre_mlir

print(len(spyre_mlir.check(sys.argv[1])), spyre_mlir.SpyreSpec.__name__, spyre_mlir.cache_info().entries)
for use in (lambda: spyre_mlir.compile(len), lambda: spyre_mlir.load(sys.argv[2]), lambda: spyre_mlir.import_program):
    try:
        use()
    except ImportError as error:
        print(error)
"""
)


def test_names_that_need_torch_say_so_where_it_is_absent_and_all_others_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPYRE_MLIR_CACHE", str(tmp_path / "cache"))
    absent = "models need torch, and it is not installed\n  try: pip install torch\n"
    file = str(ROOT / "tests/data/superdsc_real/06_ReStickifyOpLx_lx.json")
    spyre_mlir.compile(torch.nn.ReLU(), (torch.ones(2),)).save(tmp_path / "saved")
    words = [sys.executable, "-c", NAMES_WITHOUT_TORCH, file, str(tmp_path / "saved")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("1 SpyreSpec 1\n" + 3 * absent, "", 0)


def test_a_tool_that_needs_torch_says_so_where_it_is_absent(python: list[str], saved: Path) -> None:
    done = subprocess.run([*python, "-c", WITHOUT_TORCH, str(saved)], capture_output=True, text=True, check=False)
    assert done.stderr == ("error: spyre-compile needs torch here, and it is not installed\n  try: pip install torch\n")
    assert done.returncode == 1
