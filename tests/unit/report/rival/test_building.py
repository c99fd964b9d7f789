"""A plan beside that of torch-spyre's rules: every kernel is on its side, and what the rules refuse is said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import pytest
import torch
from torch import Tensor, nn

from spyre_mlir.errors import LoweringError
from spyre_mlir.frontend import import_program
from spyre_mlir.options import CompileOptions
from spyre_mlir.planning.rival import RivalError
from spyre_mlir.report.page import page_text
from spyre_mlir.report.rival import beside, building
from spyre_mlir.report.rival.beside import BesideRival, SideKernel
from spyre_mlir.report.rival.building import beside_rival
from tests.browser import shown


class Projections(nn.Module):
    """A chain of products of 4,096 features, in layers that are alike."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(4096, 4096, bias=False), nn.ReLU()) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        """One call."""
        for layer in self.layers:
            x = layer(x)
        return x


def plans(layers: int) -> BesideRival:
    """Both plans of layers on 512 rows."""
    with torch.device("meta"):
        program = import_program(Projections(layers).half(), (torch.zeros(512, 4096, dtype=torch.float16),))
    return beside_rival("projections", program.module, CompileOptions())


@pytest.fixture(scope="module")
def both() -> BesideRival:
    """Both plans of two layers."""
    return plans(2)


def loops(kernels: Sequence[SideKernel]) -> list[str]:
    """Loops of kernels with their slices."""
    return [" ".join(axis.text for axis in kernel.row.loops) for kernel in kernels]


def test_a_product_has_the_published_division_on_the_rivals_side(both: BesideRival) -> None:
    """512 x 4096 x 4096 over 4 by 8 cores: torch-spyre, work division of a Granite layer's projections."""
    product = next(pair for pair in both.operations if pair.name == "aten.linear")
    assert loops(product.rival) == ["m 512/4 n 4096/8 k 4096"]
    # The function behind it reads the same slices where they are; by the rules it does not.
    assert [k.row.writes[0].memory for k in (*product.rival, *product.planned)] == ["hbm", "lx"]


def test_every_kernel_is_on_its_side_once(both: BesideRival) -> None:
    assert both.rival is not None
    for side, timeline in enumerate((both.rival, both.planned)):
        assert sum(pair.us[side] for pair in both.operations) == pytest.approx(timeline.total_us)
        assert sum(pair.moved_bytes[side] for pair in both.operations) == timeline.moved_bytes
        counts = [pair.times * len(pair.planned if side else pair.rival) for pair in both.operations]
        assert sum(counts) == len(timeline.kernels)
    assert both.rival.total_us > both.planned.total_us


def test_equal_operations_of_equal_layers_are_one_row() -> None:
    """Of eight layers the first and the last have other neighbours; what lies between is planned alike."""
    found = plans(8).operations
    assert max(pair.times for pair in found) >= 4
    assert sum(pair.times for pair in found) == 16
    assert "layers.*.0" in {pair.module for pair in found}


def test_kernels_of_a_loop_belong_to_their_operation() -> None:
    program = import_program(nn.RNN(8, 8).eval(), (torch.randn(9, 2, 8),))
    found = beside_rival(program.name, program.module, CompileOptions())
    assert {pair.name for pair in found.operations} == {"aten.rnn_tanh.input"}


def test_printed_it_has_totals_and_the_largest_differences(both: BesideRival, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = str(both)
    assert "projections, torch-spyre's published rules and this plan" in text
    assert "device memory moved, MB" in text and "aten.linear" in text and "test_building.py:" in text
    monkeypatch.setattr(beside, "SHOWN", 1)
    assert f"and {len(both.operations) - 1} more, together" in str(both)


def test_what_the_rules_refuse_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(op: object, spec: object) -> dict[str, int]:
        raise RivalError("40 cores are needed, the card has 32")

    monkeypatch.setattr(building, "rival_division", refuse)
    found = plans(1)
    assert found.notes[0] == (
        "torch-spyre does not compile batchmatmul of aten.linear: 40 cores are needed, the card has 32; "
        "its time here is that of the usual division"
    )
    assert found.notes[0] in str(found)


def test_a_division_without_a_form_here_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "rival_division", lambda op, spec: {"m": 32, "n": 1, "k": 1})
    assert "torch-spyre's division of batchmatmul of aten.linear has no form here" in plans(1).notes[0]


def test_a_program_that_does_not_compile_by_the_rules_has_one_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise LoweringError("no split is within reach")

    monkeypatch.setattr(building, "lower_last", refuse)
    found = plans(1)
    assert found.rival is None and found.operations == () and found.totals == []
    assert "by torch-spyre's rules the program does not compile: no split is within reach" in str(found)
    page = page_text("p", found.planned, [], None, rival=found)
    assert "the program does not compile: no split is within reach" in page and "In total" not in page


def test_a_browser_shows_it(both: BesideRival, tmp_path: Path) -> None:
    html = page_text("projections", both.planned, [], None, rival=both)
    with shown(html, tmp_path) as page:
        for width, columns in ((390, 1), (1000, 2), (1920, 2)):
            page.set_viewport_size({"width": width, "height": 800})
            page.evaluate("document.querySelectorAll('#rival details').forEach(d => d.open = true)")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            sides = "[...document.querySelector('#rival details .sides').children]"
            left = page.evaluate(f"{sides}.map(s => s.getBoundingClientRect().left)")
            assert len(set(left)) == columns
        assert page.inner_text("#rival h2") == "Beside torch-spyre's rules"
        assert page.evaluate("document.querySelectorAll('#rival svg').length") == 2
        assert page.evaluate("document.querySelectorAll('#rival .totals tbody tr').length") == len(both.totals)
        assert "m 512/4 n 4096/8 k 4096" in page.inner_text("#rival details .sides")
