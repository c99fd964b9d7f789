"""A model that sets the generator while it runs is refused if it draws, and leaves torch as it was."""

import pytest
import torch
import torch._dynamo  # wraps `manual_seed` when it is imported first

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend import import_program
from tests.functions import FunctionModel

X = torch.ones(3)


def seeding(x: torch.Tensor) -> torch.Tensor:
    torch.manual_seed(3)
    return x + torch.rand(3)


def forking(x: torch.Tensor) -> torch.Tensor:
    with torch.random.fork_rng(devices=[]):
        return x + torch.rand(3)


@pytest.mark.parametrize(("model", "name"), [(seeding, "manual_seed"), (forking, "set_rng_state")])
def test_refused(model: object, name: str) -> None:
    before, functions = torch.get_rng_state(), (torch.manual_seed, torch.random.set_rng_state)
    with pytest.raises(UnsupportedError, match=f"while it runs, by torch.{name}, and draws") as caught:
        import_program(FunctionModel(model), (X,))  # type: ignore[arg-type]
    assert "test_seeding.py" in str(caught.value)
    assert torch.equal(before, torch.get_rng_state())
    assert functions == (torch.manual_seed, torch.random.set_rng_state)


def test_seeding_without_a_draw_is_none_of_the_programs() -> None:
    def seeds(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(3)
        return x + 1

    before = torch.get_rng_state()
    assert import_program(FunctionModel(seeds), (X,)).results == ("output",)
    assert torch.equal(before, torch.get_rng_state())
