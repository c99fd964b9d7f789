"""The model's tensors as the rest of the package takes them: as the model has them now."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import spyre_mlir
from spyre_mlir.errors import InputError
from spyre_mlir.frontend import HostValues, import_program


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(x)
        return x * self.weight + self.count


def test_values_are_those_the_model_has_now() -> None:
    model = Counter()
    values = HostValues(import_program(model, (torch.ones(3),), None))
    assert sorted(values) == ["count", "weight"]
    assert len(values) == 2
    assert "weight" in values
    assert "bias" not in values
    assert values.modified() == [] and values.modified() is None
    with torch.no_grad():
        model.count.fill_(7)
        assert values.modified() is None, "calls write it"
        model.weight.fill_(5)
    assert values["weight"].tolist() == [5, 5, 5]
    assert values["count"].tolist() == [7, 7, 7]
    for write in (lambda: None, lambda: model.weight.data.fill_(4)):  # torch counts no write of the second
        write()
        (modified,) = values.modified() or ()
        assert modified.data_ptr() == model.weight.data_ptr() and values.modified() is None


@torch.no_grad()
def test_buffers_are_one_whoever_writes_them() -> None:
    model, x = Counter(), torch.ones(3)
    first = spyre_mlir.compile(model, (x,), numerics="exact")
    lazy = spyre_mlir.compile(model, numerics="exact")
    seen = [
        step(x)[0].item() for step in (first, model, lazy, lambda x: lazy(x.expand(2, 3).clone().sum(0) / 2), first)
    ]
    assert seen == [2, 3, 4, 5, 6]


@torch.no_grad()
@pytest.mark.parametrize("numerics", ["device", "exact"])
def test_calls_have_the_weights_that_the_model_has(numerics: Any) -> None:
    model, x = torch.nn.Linear(4, 4), torch.eye(4)
    compiled = spyre_mlir.compile(model, (x,), numerics=numerics)
    compiled(x)
    model.load_state_dict({"weight": torch.eye(4) * 2, "bias": torch.ones(4)})
    assert torch.equal(compiled(x), torch.eye(4) * 2 + 1)
    model.weight.mul_(2)
    assert torch.equal(compiled(x), torch.eye(4) * 4 + 1)
    assert compiled.accuracy(x).worst < 1e-3


@torch.no_grad()
def test_a_model_with_other_tensors_is_compiled_again() -> None:
    model, x = torch.nn.Linear(4, 4), torch.eye(4)
    compiled, lazy = spyre_mlir.compile(model, (x,)), spyre_mlir.compile(model)
    lazy(x)
    model.load_state_dict({"weight": torch.eye(4) * 2, "bias": torch.ones(4)}, assign=True)
    assert torch.equal(lazy(x), torch.eye(4) * 2 + 1)
    with pytest.raises(InputError, match="another tensor 'weight'"):
        compiled(x)
    with pytest.raises(InputError, match="another tensor 'weight'"):
        compiled.verify(x)


@torch.no_grad()
def test_a_lazy_model_is_compiled_for_training_and_for_use() -> None:
    model, x = torch.nn.BatchNorm1d(4), torch.arange(12.0).view(3, 4)
    lazy = spyre_mlir.compile(model, numerics="exact")
    lazy(x)
    model.eval()
    torch.testing.assert_close(lazy(x), model(x), rtol=1e-4, atol=1e-5)


def test_elements_that_nobody_set_are_zero() -> None:
    class Unset(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return torch.empty(64) + x, x.new_empty(64), torch.empty_strided((8, 8), (1, 8))

    x = torch.zeros(64)
    assert all(not r.any() for r in spyre_mlir.compile(Unset(), (x,))(x))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_inputs_that_torch_notes_as_negated_or_nested() -> None:
    compiled = spyre_mlir.compile(torch.nn.ReLU(), (torch.ones(2),), numerics="exact")
    negated = torch.tensor([1 + 2j, 3 - 4j]).conj().imag
    assert negated.is_neg()
    assert compiled(negated).tolist() == [0, 4]
    with pytest.raises(InputError, match="got a tensor of tensors"):
        compiled(torch.nested.nested_tensor([torch.ones(2)]))


def test_what_leads_to_a_tensor_without_elements_is_not_computed(tmp_path: Path) -> None:
    class Emptied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(3, 4))

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.nn.functional.pad((x + y) * self.weight, (0, 1)).T[0:0], y * 2

    x, y = torch.randn(3, 4), torch.randn(3, 4)
    compiled = spyre_mlir.compile(Emptied(), (x, y))
    assert [line.split("= ")[1].split("(")[0] for line in compiled.mlir("aten").splitlines() if "= aten." in line] == [
        "aten.mul.Tensor"
    ]
    empty, doubled = compiled(x, y)
    assert empty.shape == (0, 3)
    torch.testing.assert_close(doubled, y * 2, rtol=1e-3, atol=0)
    assert spyre_mlir.check(compiled.save(tmp_path / "bundle")) == ()
