"""Notebooks: what a cell shows, and those in examples/, executed headless."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT

EXAMPLES = ROOT / "examples"
CELLS = [
    "import torch, spyre_mlir\nx = torch.ones(4, 64)\nmodel = spyre_mlir.compile(torch.nn.ReLU(), (x,))\nmodel",
    "model.report()",
    "spyre_mlir.compile(torch.nn.Tanh())",
]
ADVICE = "try: pip install -e '.[notebook]'"
# Runs a marimo notebook with other values of its controls, and prints what its cells show.
MARIMO = """
import json, sys
sys.path.insert(0, sys.argv[1])
from tour_marimo import app
outputs, defined = app.run()
shown = [getattr(o, "_repr_html_", lambda: str(o))() for o in outputs if o is not None]
print(json.dumps({"shown": shown, "verified": bool(defined["verified"]), "text": defined["text"],
                  "error": defined["accuracy"].worst, "total_us": defined["report"].figures.total_us}))
"""


def executed(notebook: Any, folder: Path) -> list[dict[str, Any]]:
    """The cells of a Jupyter notebook after a run in a kernel of its own."""
    nbclient: Any = pytest.importorskip("nbclient", reason=f"nbclient is not installed; {ADVICE}")
    pytest.importorskip("ipykernel", reason=f"ipykernel is not installed; {ADVICE}")
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(folder)}}).execute()
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def nbformat() -> Any:
    return pytest.importorskip("nbformat", reason=f"nbformat is not installed; {ADVICE}")


def shown(cell: dict[str, Any]) -> str:
    """What a cell shows as its value."""
    (found,) = [out["data"]["text/html"] for out in cell["outputs"] if out["output_type"] == "execute_result"]
    return found


def printed(cell: dict[str, Any]) -> str:
    return "".join(out["text"] for out in cell["outputs"] if out["output_type"] == "stream" and out["name"] == "stdout")


def test_cells_show_text(tmp_path: Path) -> None:
    v4 = nbformat().v4
    cells = executed(v4.new_notebook(cells=[v4.new_code_cell(cell) for cell in CELLS]), tmp_path)
    model, report, lazy = map(shown, cells)
    assert "&lt;CompiledModel ReLU: 1 kernel, (input 4x64) -&gt; (output)&gt;" in model
    assert "relufwd" in report
    assert "&lt;LazyModel Tanh: 0 programs&gt;" in lazy


def test_notebooks_are_kept_without_outputs() -> None:
    for path in EXAMPLES.glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert [cell["outputs"] or cell["execution_count"] for cell in cells if cell["cell_type"] == "code"] == [
            *([None] * sum(cell["cell_type"] == "code" for cell in cells))
        ]


def test_the_jupyter_notebook(tmp_path: Path) -> None:
    model, verified, text, report, explained, accuracy, spoilt, cured, loaded = executed(
        nbformat().read(EXAMPLES / "tour.ipynb", 4), tmp_path
    )
    assert "&lt;CompiledModel Block: " in shown(model)
    assert 0 < float(printed(verified).rpartition(" ")[2]) < 0.1
    assert shown(verified).count(" ok") == 5
    assert printed(text).startswith("builtin.module")
    assert "batchmatmul" in shown(report) and (tmp_path / "report.html").exists()
    assert "batchmatmul for " in shown(explained)
    assert "rounding to DLFloat16 explains the difference" in shown(accuracy)
    assert "the largest DLFloat16, first in " in shown(spoilt) and "keep_float32=True, tried: " in shown(spoilt)
    before, after = map(float, printed(cured).split(" becomes "))
    assert after < 1e-3 < 0.1 < before
    assert printed(loaded) == "True\n" and "&lt;LoadedModel" in shown(loaded)


def test_the_marimo_notebook() -> None:
    if importlib.util.find_spec("marimo") is None:
        pytest.skip(f"marimo is not installed; {ADVICE}")
    command = [sys.executable, "-c", MARIMO, str(EXAMPLES)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["verified"] is True and 0 < found["error"] < 1e-2 and found["total_us"] > 0
    assert found["text"].startswith("builtin.module")
    everything = "\n".join(found["shown"])
    for part in ("CompiledModel Sequential", "batchmatmul", "rounding to DLFloat16 explains the difference"):
        assert part in everything
