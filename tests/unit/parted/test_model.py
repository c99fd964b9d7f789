"""A model in parts: which programs it makes, and keeps."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dynamic.model import DynamicModel
from spyre_mlir.errors import InputError
from spyre_mlir.parted.model import PartedModel
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")


def upto(count: int) -> Tensor:
    """So many ones, then minus ones."""
    return torch.where(torch.arange(9) < count, 1.0, -1.0)


@pytest.fixture(scope="module")
def model() -> PartedModel:
    made = spyre_mlir.compile(FunctionModel(lambda x: x[x > 0] * 3), (upto(4),), numerics="exact", specializations=1)
    assert isinstance(made, PartedModel)
    return made


def test_parts_with_known_sizes_and_with_symbols(model: PartedModel) -> None:
    first, second = model.parts
    assert isinstance(first, CompiledModel)
    assert isinstance(second, DynamicModel)
    assert [step.op for step in model.host_steps] == ["aten.index.Tensor"]


def test_one_program_of_each_part_is_kept(model: PartedModel) -> None:
    for count in (3, 1, 5, 0, 3):
        assert model(upto(count)).tolist() == [3.0] * count
    first, *others = model.programs
    assert first is model.parts[0]
    assert len(others) <= 2
    assert repr(model).startswith("<PartedModel FunctionModel: 2 parts, ")


def test_a_wrong_part_fails_verification(model: PartedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole is compared with the model, not with its parts."""
    assert model.verify(upto(3))
    monkeypatch.setattr(model, "_model", FunctionModel(lambda x: x[x > 0] * 4))
    verification = model.verify(upto(3))
    assert not verification
    assert verification.levels[-1].level == "the whole"
    monkeypatch.setattr(model, "_model", FunctionModel(lambda x: x[x > 2]))
    assert "a result is (3,), torch gives (0,)" in str(model.verify(upto(3)))


def test_a_model_that_rounds_as_the_device_does_verifies() -> None:
    """Levels and the whole are run in exact numerics, whatever calls do."""
    x = torch.linspace(-1, 1, 24).reshape(4, 6)
    made = spyre_mlir.compile(FunctionModel(lambda x: (x[x[:, 0] < 0.3] @ x.t()).exp()), (x,))
    assert isinstance(made, PartedModel)
    assert (made(x) - (x[x[:, 0] < 0.3] @ x.t()).exp()).abs().max() > 1e-4, "calls round"
    verification = made.verify(x)
    assert verification, str(verification)


def test_levels_below_have_no_symbols(model: PartedModel) -> None:
    with pytest.raises(InputError, match=r"the level superdsc has no symbols"):
        model.mlir("superdsc")
