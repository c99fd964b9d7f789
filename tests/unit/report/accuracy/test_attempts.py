"""Changes that are tried: what they cure, measured against torch, and what they cost."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.debug.error_walk import KernelError
from spyre_mlir.options import CompileOptions
from spyre_mlir.report.accuracy.attempts import Attempt, attempts


class Overflowing(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sqrt(x * 1e6 * (x * 1e6)) * 1e-6


@pytest.mark.filterwarnings("ignore::spyre_mlir.machine.overflows.DL16OverflowWarning")
def test_what_keep_float32_cures_is_measured() -> None:
    x = torch.linspace(1, 2, 4 * 64).reshape(4, 64)
    model = spyre_mlir.compile(Overflowing(), (x,))
    kept = spyre_mlir.compile(Overflowing(), (x,), keep_float32=True)
    assert isinstance(model, CompiledModel) and isinstance(kept, CompiledModel)
    found, line = model.accuracy(x).tried
    wanted = Overflowing()(x.double()).numpy()
    error = [float(np.sqrt(((c(x).numpy() - wanted) ** 2).sum() / (wanted**2).sum())) for c in (model, kept)]
    assert [found.before, found.error] == pytest.approx(error, rel=1e-3)
    assert found.helps and found.before > 0.1 and found.error < 0.01
    assert [found.us_before, found.us] == [model.timeline().kernels_us, kept.timeline().kernels_us]
    assert kept.accuracy(x).tried == ()
    assert line.change.startswith("keep_float32_in=('test_attempts.py:") and line.helps
    name = line.change.partition("'")[2].rstrip("',)")
    part = spyre_mlir.compile(Overflowing(), (x,), keep_float32_in=(name,))
    assert isinstance(part, CompiledModel)
    assert line.error == pytest.approx(part.accuracy(x).worst) and line.us == part.timeline().kernels_us


def test_parts_are_tried_where_the_whole_helps() -> None:
    suspects = [
        KernelError("sdsc_1.json", "mul", "layers.1", "m.py:7", 1.0, 0.0, overflows=2),
        KernelError("sdsc_3.json", "mul", "layers.2", "m.py:7", 1.0, 1.0, lost=1),
        KernelError("sdsc_2.json", "exp", "layers.0", "m.py:9", 0.5, 0.1),
    ]
    errors = {(): 0.01, ("layers.1", "layers.2"): 0.02, ("m.py:7",): 0.3}
    tried = attempts(CompileOptions(), 0.5, 2.0, lambda options: (errors[options.keep_float32_in], 3.0), suspects)
    assert [(one.change, one.error, one.helps) for one in tried] == [
        ("keep_float32=True", 0.01, True),
        ("keep_float32_in=('layers.1', 'layers.2')", 0.02, True),
        ("keep_float32_in=('m.py:7',)", 0.3, False),
    ]
    (alone,) = attempts(CompileOptions(), 0.5, 2.0, lambda _: (0.4, 3.0), suspects)
    assert not alone.helps


@pytest.mark.filterwarnings("ignore::spyre_mlir.machine.overflows.DL16OverflowWarning")
def test_terminal_and_page_say_what_cures_an_overflow(tmp_path: Path) -> None:
    x = torch.linspace(1, 2, 4 * 64).reshape(4, 64)
    model = spyre_mlir.compile(Overflowing(), (x,))
    assert isinstance(model, CompiledModel)
    accuracy = model.accuracy(x)
    model.report(tmp_path / "page.html", accuracy=accuracy)
    for text in (str(accuracy), (tmp_path / "page.html").read_text(), accuracy._repr_html_()):
        assert "beyond 8,573,157,376, the largest DLFloat16, first in " in text
        assert "compile with keep_float32=True; see docs/dl16-exceptions.md" in text
        assert str(accuracy.tried[0]) in text


def test_nothing_is_tried_where_rounding_explains_the_error() -> None:
    x = torch.linspace(1, 2, 4 * 64).reshape(4, 64)
    model = spyre_mlir.compile(torch.nn.ReLU(), (x,))
    assert isinstance(model, CompiledModel)
    assert "tried" not in str(model.accuracy(x))


def test_what_is_no_cure_is_said_to_be_none() -> None:
    (found,) = attempts(CompileOptions(), 0.25, 2.0, lambda options: (0.2, 3.0 if options.keep_float32 else 0.0))
    assert found == Attempt("keep_float32=True", 0.25, 0.2, 2.0, 3.0) and not found.helps
    assert str(found) == (
        "keep_float32=True, tried: the error of 2.5e-01 becomes 2.0e-01, which is no cure; 2.00 us become 3.00"
    )
    assert "no cure" not in str(Attempt("a", 0.25, 0.125, 2.0, 3.0))
