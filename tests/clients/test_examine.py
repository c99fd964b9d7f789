"""A row says what went wrong, wherever it went wrong; shown with models that need no package."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.clients import examine
from tests.clients.catalogue import CATALOGUE, Entry
from tests.clients.examine import _difference, row_of
from tests.clients.page import Row, page_text
from tests.models.entry import Built

NAN, INF = float("nan"), float("inf")
Made = Callable[[Callable[[], Built]], Row]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Made:
    """The row of a model that is made so."""

    def row(make: Callable[[], Built]) -> Row:
        entry = Entry("timm", "one", make)
        monkeypatch.setitem(CATALOGUE, entry.name, entry)
        return row_of(entry.name)

    return row


def test_a_model_that_is_right(made: Made) -> None:
    row = made(lambda: (nn.Linear(4, 3), (torch.randn(2, 4),)))
    assert row.trouble == "" and row.kernels > 0 and row.host == 0 and row.reasons == {}
    assert row.exact is not None and row.exact < 1e-6
    assert row.device is not None and 1e-5 < row.device < 1e-2


def test_files_that_are_wrong(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command checks them as well, where no fixture of pytest does."""

    def refuse(directory: Path) -> None:
        assert not list(directory.glob("sdsc_*.json")), "an address too many"

    monkeypatch.setattr(examine, "check_bundle_once", refuse)
    row = made(lambda: (nn.Linear(4, 3), (torch.randn(2, 4),)))
    assert row.trouble.startswith("crash in checking the files: AssertionError: an address too many")


def test_a_step_of_the_host_has_its_reason(made: Made) -> None:
    class Counted(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigvalsh(x @ x.T) + 1

    row = made(lambda: (Counted(), (torch.randn(3, 3),)))
    assert row.host > 0 and row.reasons
    assert all(reason.split(": ")[1] for reason in row.reasons)


def test_a_package_that_fails(made: Made) -> None:
    def fail() -> Built:
        raise OSError("no such width")

    assert made(fail).trouble == "crash in the package: OSError: no such width"


def test_a_model_that_is_refused(made: Made) -> None:
    class Branching(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else -x

    row = made(lambda: (Branching(), (torch.ones(3),)))
    assert row.trouble.startswith("compiling: UnsupportedError: ")
    assert row.exact is None and row.device is None


def test_numbers_that_are_wrong(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    eager = examine._eager
    monkeypatch.setattr(examine, "_eager", lambda model, inputs: [leaf * 1.01 for leaf in eager(model, inputs)])
    row = made(lambda: (nn.Linear(4, 3), (torch.randn(2, 4),)))
    assert row.trouble.startswith("wrong: an exact error of 9.9e-03 is beyond 1e-04")
    assert row.kernels > 0 and row.device is not None


@pytest.mark.parametrize(
    ("got", "wanted", "error"),
    [
        ([1.0, -4.0], [1.0, -4.0], 0.0),
        ([1.0, -4.0], [2.0, -4.0], 0.25),
        ([NAN, 1.0], [NAN, 1.0], 0.0),
        ([0.0, 1.0], [NAN, 1.0], INF),
        ([INF, 1.0], [-INF, 1.0], INF),
        ([NAN, 1.0], [1.0, 1.0], INF),
        ([1, 2], [1, 3], INF),
        ([0.0, 1e-9], [0.0, 0.0], INF),
    ],
)
def test_differences(got: list[float], wanted: list[float], error: float) -> None:
    assert _difference([torch.tensor(got)], [torch.tensor(wanted)]) == error


def test_results_of_another_kind_are_trouble() -> None:
    for other in (torch.ones(2, 1), torch.ones(2, dtype=torch.float64)):
        with pytest.raises(examine.Trouble, match="wrong: expected results"):
            _difference([other], [torch.ones(2)])


def test_the_page_names_trouble_and_reasons() -> None:
    wrong = Row("1.0", 7, 2, {"acme::sort: too long: 9": 2}, 0.5, 0.001, 1.0, "wrong: by far")
    text = page_text({"fms/llama": wrong})
    assert "| llama | 7 | 2 | **5e-01** | 1.0e-03 | 1.0 |" in text
    assert "* llama: wrong: by far\n" in text
    assert "* `acme::sort`: too long: 9: llama (2)\n" in text
    assert "| mpnet |  |  | not run | | |" in text
