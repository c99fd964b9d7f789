"""What weights are bound from."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from spyre_mlir.errors import BindingError
from spyre_mlir.frontend.weights.sources import is_on_disk, tensors_of


class Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(2, 2, bias=False)
        self.second = torch.nn.Linear(2, 2, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("table", torch.arange(2.0), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x)) + self.table


def test_a_module_has_every_name_and_all_buffers() -> None:
    model = Tied()
    found = tensors_of(model)
    assert set(found) == {"first.weight", "second.weight", "table"}
    assert found["first.weight"].data_ptr() == model.second.weight.data_ptr()
    assert not found["first.weight"].requires_grad


def test_a_program_has_its_constants() -> None:
    found = tensors_of(torch.export.export(Tied(), (torch.ones(1, 2),)))
    assert set(found) == {"first.weight", "second.weight", "table"}


def test_tensors_without_values_are_left_out() -> None:
    assert tensors_of(Tied().to("meta")) == {}
    assert set(tensors_of({"a": torch.ones(1), "b": torch.ones(1, device="meta")})) == {"a"}


def test_a_path_is_a_checkpoint(tmp_path: Path) -> None:
    save_file({"a": torch.ones(1)}, tmp_path / "a.safetensors")
    assert set(tensors_of(str(tmp_path))) == set(tensors_of(tmp_path)) == {"a"}
    assert [is_on_disk(x) for x in ("a", Path("a"), {}, Tied())] == [True, True, False, False]


@pytest.mark.parametrize(
    ("source", "text"),
    [(3, "got int"), ({"a": 1.0}, "got 'a': float"), ({1: torch.ones(1)}, "got 1: Tensor"), (None, "got NoneType")],
)
def test_what_has_no_weights(source: object, text: str) -> None:
    with pytest.raises(BindingError, match=text):
        tensors_of(source)
