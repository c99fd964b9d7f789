"""Names of what keeps float32 in functions that Dynamo divides into several graphs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import nn

from spyre_mlir.errors import AbsentNamesError
from spyre_mlir.torch_compile import programs
from spyre_mlir.torch_compile.kept_names import AbsentNamesWarning

X = torch.linspace(-2, 2, 4 * 64).reshape(4, 64)


class Divided(nn.Module):
    def __init__(self, *, broken: bool = True) -> None:
        super().__init__()
        self.first, self.second, self.broken = nn.LayerNorm(64), nn.LayerNorm(64), broken

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x) * 2
        if self.broken:
            torch._dynamo.graph_break()
        return self.second(x) + 1


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def wide(*names: str, broken: bool = True) -> list[bool]:
    """Whether each graph of the model has something that keeps float32."""
    model = Divided(broken=broken).eval()
    compiled = torch.compile(model, backend="spyre", options={"keep_float32_in": names, "numerics": "exact"})
    with torch.no_grad():
        torch.testing.assert_close(compiled(X), model(X))
    return ["IEEE_FP32" in program.mlir("spyre.kernel") for program in programs(compiled)]


@pytest.mark.parametrize(("name", "found"), [("first", [True, False]), ("second", [False, True])])
def test_a_name_is_kept_in_the_graph_that_has_it(name: str, found: list[bool]) -> None:
    text = f"one of several, has nothing .* called '{name}'.*write '{name}\\?'"
    with pytest.warns(AbsentNamesWarning, match=text) as met:
        assert wide(name) == found
    assert len([one for one in met if one.category is AbsentNamesWarning]) == 1


def test_names_of_both_graphs_and_optional_ones_warn_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", AbsentNamesWarning)
        assert wide("first?", "second?") == [True, True]
        assert wide("layer_norm") == [True, True]


def test_a_name_of_no_graph_is_told_at_each() -> None:
    with pytest.warns(AbsentNamesWarning, match="called 'third'") as met:
        assert wide("third") == [False, False]
    assert len([one for one in met if one.category is AbsentNamesWarning]) == 2


def test_a_reset_of_dynamo_forgets_which_functions_it_divided() -> None:
    with pytest.warns(AbsentNamesWarning, match="called 'third'"):
        wide("third")
    torch._dynamo.reset()
    with pytest.raises(AbsentNamesError, match="nothing of the program is called 'third'"):
        wide("third", broken=False)


def test_a_name_that_the_only_graph_lacks_is_refused() -> None:
    with pytest.raises(AbsentNamesError, match="nothing of the program is called 'third'"):
        wide("third", broken=False)
