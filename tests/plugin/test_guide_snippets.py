"""Every snippet of PyTorch-IR's extension guide runs with `torch_ir` replaced by `spyre_mlir`.

The guide is not ours, so it is not here: PYTORCH_IR_GUIDE names the file. `test_extension_guide.py` has the same
sections in words of our own.
"""

from __future__ import annotations

import dataclasses
import os
import re
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import spyre_mlir
from spyre_mlir.analyzer import NodeInfo
from spyre_mlir.frontend.lowering.plugin_conversion import UnknownOperationWarning
from spyre_mlir.plugins import registry

GUIDE = os.environ.get("PYTORCH_IR_GUIDE")
BLOCK = re.compile(r"^```python\n(.*?)^```", re.M | re.S)
FIELDS = ("name", "op", "target", "args", "kwargs", "input_metas", "output_metas", "attrs")
X, Y = torch.linspace(-3, 3, 4 * 64).reshape(4, 64), torch.linspace(2, -1, 4 * 64).reshape(4, 64)


class Gate(torch.nn.Module):
    """The operator of the guide's complete example."""

    def forward(self, gate: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return torch.ops.custom.fused_gate(gate, value)


@pytest.fixture(autouse=True)
def operator() -> Iterator[None]:
    library = torch.library.Library("custom", "DEF")
    library.define("fused_gate(Tensor gate, Tensor value) -> Tensor")
    library.impl("fused_gate", lambda gate, value: torch.empty_like(value), "Meta")
    with registry.isolated():
        yield
    library._destroy()


@pytest.fixture
def snippets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The Python blocks; the modules that they say they are lie where Python finds them."""
    if GUIDE is None:
        pytest.skip("PYTORCH_IR_GUIDE names no extension guide of PyTorch-IR")
    blocks = [b.replace("torch_ir", "spyre_mlir") for b in BLOCK.findall(Path(GUIDE).read_text())]
    package = tmp_path / "my_ops"
    package.mkdir()
    for name in ("custom_gate", "custom_pooling"):
        (package / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    for block in blocks:
        first = block.splitlines()[0].removeprefix("# ")
        if first in ("my_custom_ops.py", "my_ops/__init__.py"):
            (tmp_path / first).write_text(block)
    for name in [m for m in sys.modules if m.partition(".")[0] in ("my_ops", "my_custom_ops")]:
        monkeypatch.delitem(sys.modules, name)
    return blocks


def run_all(snippets: list[str]) -> dict[str, Any]:
    """Runs the blocks one after another, as somebody does who types them; modules are imported where they are files."""
    names: dict[str, Any] = {**vars(typing), "dataclass": dataclasses.dataclass, "TensorMeta": spyre_mlir.TensorMeta}
    names |= {"model": Gate(), "inputs": (X, Y), "some_operation": torch.mul, "__name__": "guide"}
    for block in snippets:
        if block.startswith("# my_ops/"):
            __import__("my_ops")
        elif not block.startswith("# my_custom_ops"):
            exec(compile(block, "extension guide", "exec", dont_inherit=True), names)  # noqa: S102
    return names


def test_every_snippet_runs(snippets: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    names = run_all(snippets)
    assert len(snippets) >= 10
    said = capsys.readouterr().out
    assert "Target: custom.fused_gate.default" in said and "kwarg_only=False" in said
    fields = [f.name for f in dataclasses.fields(names["NodeInfo"])]
    assert fields == list(FIELDS)
    assert set(fields) <= {n for n in dir(NodeInfo) if not n.startswith("_")} | set(NodeInfo.__annotations__)


def test_the_complete_example_gives_what_it_says(snippets: list[str]) -> None:
    names = run_all(snippets)
    extract: Callable[..., Any] = names["extract_ir"]
    unknown = "my_custom_op, my_op_with_two_outputs: torch has no such operator"
    with pytest.warns(UnknownOperationWarning, match=unknown):
        assert "fused_gate" in str(extract(Gate(), (X, Y)).module)
    with pytest.warns(UnknownOperationWarning, match=unknown):
        compiled = spyre_mlir.compile(Gate(), (X, Y), host_fallback="allow", numerics="exact")
    torch.testing.assert_close(compiled(X, Y), torch.sigmoid(X) * Y)
