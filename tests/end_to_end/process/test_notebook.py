"""A notebook shows compiled models and reports as their text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

CELLS = [
    "import torch, spyre_mlir\nx = torch.ones(4, 64)\nmodel = spyre_mlir.compile(torch.nn.ReLU(), (x,))\nmodel",
    "model.report()",
    "spyre_mlir.compile(torch.nn.Tanh())",
]


def test_cells_show_text(tmp_path: Path) -> None:
    nbclient: Any = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    nbformat: Any = pytest.importorskip("nbformat")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    (model,), (report,), (lazy,) = [
        [output["data"]["text/html"] for output in cell["outputs"] if output["output_type"] == "execute_result"]
        for cell in notebook["cells"]
    ]
    assert "&lt;CompiledModel ReLU: 1 kernels, (input 4x64) -&gt; (output)&gt;" in model
    assert "relufwd" in report
    assert "&lt;LazyModel Tanh: 0 programs&gt;" in lazy
