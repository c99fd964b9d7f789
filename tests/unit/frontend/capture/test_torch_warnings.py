"""What torch prints of its own while it exports is not shown; what the model prints and warns of is."""

from __future__ import annotations

import sys
import warnings

import pytest
import torch

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend import import_program
from tests.functions import FunctionModel

X = torch.randn(4)


def test_a_branch_on_data_prints_no_graph(capsys: pytest.CaptureFixture[str]) -> None:
    def branch(x: torch.Tensor) -> torch.Tensor:
        print("before the branch", file=sys.stderr)
        return x if (x < 0).any() else -x

    with pytest.raises(UnsupportedError):
        import_program(FunctionModel(branch), (X,))
    said = capsys.readouterr()
    assert set(said.err.splitlines()) == {"before the branch"}
    assert said.out == ""


def test_what_the_model_says_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    def talkative(x: torch.Tensor) -> torch.Tensor:
        print("def inition", file=sys.stderr)
        warnings.warn("an old function", DeprecationWarning, stacklevel=1)
        return x + 1

    with pytest.warns(DeprecationWarning, match="an old function"):
        import_program(FunctionModel(talkative), (X,))
    assert capsys.readouterr().err == "def inition\n"
