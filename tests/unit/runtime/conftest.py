"""The stand-in of a card, and bundles to give it."""

from pathlib import Path
from typing import Literal

import pytest
import torch

import spyre_mlir
from spyre_mlir.runtime import find_card
from spyre_mlir.runtime.finding import CardSoftware
from tests.card.conftest import card_python, stand_in

__all__ = ["card_python", "stand_in"]


class Layer(torch.nn.Module):
    """A layer whose rows are no multiple of a core's: three kernels, as each takes the card's processes a second."""

    def __init__(self, place: Literal["hbm", "lx"]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.a = torch.nn.Linear(128, 256)
        self.place: Literal["hbm", "lx"] = place

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with spyre_mlir.hint(place=self.place):
            y = self.a(x)
        return torch.relu(y)


def saved(directory: Path, place: Literal["hbm", "lx"]) -> Path:
    spyre_mlir.compile(Layer(place).eval(), (torch.zeros(64, 128),), cache=False).save(directory)
    return directory


@pytest.fixture(scope="session")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kernels whose results are all in device memory."""
    return saved(tmp_path_factory.mktemp("card") / "apart", "hbm")


@pytest.fixture(scope="session")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kernels that hand everything on through the scratchpads."""
    return saved(tmp_path_factory.mktemp("card") / "tied", "lx")


@pytest.fixture
def card(stand_in: None, card_python: str) -> CardSoftware:
    return find_card(python=card_python)
