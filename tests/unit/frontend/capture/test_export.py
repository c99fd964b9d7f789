"""Decomposition by torch: what it would leave as it is goes around it, and looks the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import ExportedProgram

import spyre_mlir
from spyre_mlir.errors import ImportProgramError
from spyre_mlir.frontend import import_program
from spyre_mlir.frontend.capture import export
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.table import Family
from spyre_mlir.text.render import module_text
from tests.functions import FunctionModel

X = torch.randn(4, 6)
LEFT = {
    "kept composites": nn.Sequential(nn.Linear(6, 3), nn.GELU(), nn.LayerNorm(3), nn.Softmax(-1)),
    "functional operators": FunctionModel(lambda x: torch.relu(x + 1).sum(0).permute(0)),
    "several results": FunctionModel(lambda x: torch.aminmax(x.amax(0), dim=0)[0] + x.topk(2)[0].sum()),
    "an alias": FunctionModel(lambda x: (x.permute(1, 0), x)),
}
DECOMPOSED: dict[str, Callable[[torch.Tensor], Any]] = {
    "composite": lambda x: x.reshape(-1),
    "in place": lambda x: (x + 1).mul_(2),
    "in the table": lambda x: torch.deg2rad(x),
    "constants": lambda x: x[[0, 1], :, None] + x[:, [0, 1]].sum(),
    "no result": lambda x: (x.argmax(), torch.relu(x))[1],
}


@pytest.fixture
def decomposed(monkeypatch: pytest.MonkeyPatch) -> list[ExportedProgram]:
    """Collects the programs that torch is asked to decompose."""
    asked: list[ExportedProgram] = []
    original = ExportedProgram.run_decompositions

    def noted(program: ExportedProgram, *args: Any, **kwargs: Any) -> ExportedProgram:
        asked.append(program)
        return original(program, *args, **kwargs)

    monkeypatch.setattr(ExportedProgram, "run_decompositions", noted)
    return asked


def shown(model: nn.Module) -> tuple[str, list[str]]:
    module = import_program(model, (X,)).module
    return module_text(module, generic=True), [str(op.location) for op in module.walk()]


@pytest.mark.parametrize("name", LEFT)
def test_nothing_to_decompose(name: str, decomposed: list[ExportedProgram], monkeypatch: pytest.MonkeyPatch) -> None:
    around = shown(LEFT[name])
    assert not decomposed
    monkeypatch.setattr(export, "_stays", lambda *_: False)
    assert shown(LEFT[name]) == around
    assert decomposed


@pytest.mark.parametrize("name", DECOMPOSED)
def test_something_to_decompose(name: str, decomposed: list[ExportedProgram]) -> None:
    import_program(FunctionModel(DECOMPOSED[name]), (X,))
    assert decomposed


def test_torch_takes_apart_no_operation_that_the_table_computes() -> None:
    named = {o if "." in o else f"{o}.default" for e in ATEN if e.family is not Family.VIEW for o in e.overloads}
    missing = {name for name in named if "::" not in name} - export.whole_overloads()
    # They may give their input's memory, which torch follows; but for the first, torch has no other form of them.
    assert missing == {"contiguous.default", "as_strided.default", "diagonal.default", "unfold.default"}


@pytest.mark.parametrize("name", ["view", "permute", "_unsafe_view", "contiguous"])
def test_views_are_torchs_to_take_apart(name: str) -> None:
    assert ATEN.find(name) is not None
    assert f"{name}.default" not in export.whole_overloads()


@pytest.mark.parametrize(
    "line",
    [
        lambda x: torch.linspace(4.3, -3, 50, dtype=torch.int64) + x,
        lambda x: torch.linspace(-4.7, 9.9, 50, dtype=torch.int32) + x,
        lambda x: torch.linspace(x, -3, 50, dtype=torch.int64),
        lambda x: torch.linspace(-0.3, 0.7, 7) * x,
    ],
)
@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
def test_lines_of_integers_between_float_ends(line: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.tensor(4.3)
    compiled = spyre_mlir.compile(FunctionModel(line), (x,), numerics="exact")
    torch.testing.assert_close(compiled(x), line(x))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file"),
        (b"text", "this is no .pt2 file: not a zip archive"),
        (b"PK\3\4 and no more", "the file is truncated: its zip directory is missing"),
    ],
)
def test_what_is_no_saved_program_is_refused(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ImportProgramError) as refused:
        export.load_pt2(path)
    assert refused.value.message == message
    assert refused.value.where == str(path)
    with pytest.raises(ImportProgramError, match="this is no file"):
        export.load_pt2(tmp_path)
