"""Compiled models with symbolic sizes: what is made when, kept how long, and refused how."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

import spyre_mlir
from spyre_mlir import api, builders
from spyre_mlir.dialects.aten_sizes import SymbolRange
from spyre_mlir.dynamic.model import DynamicModel
from spyre_mlir.errors import BindingError, InputError


class Rows(nn.Module):
    """A layer whose weight is part of every specialisation."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).relu()


MODEL = Rows().eval()
SHAPES: Any = ({0: Dim("rows", min=2, max=9)},)


def compiled(**options: Any) -> DynamicModel:
    made = spyre_mlir.compile(MODEL, (torch.ones(5, 4),), dynamic_shapes=SHAPES, numerics="exact", **options)
    assert isinstance(made, DynamicModel)
    return made


def exported() -> torch.export.ExportedProgram:
    return torch.export.export(MODEL, (torch.ones(5, 4),), dynamic_shapes=SHAPES)


def agrees(model: DynamicModel, rows: int) -> bool:
    x = torch.randn(rows, 4)
    return torch.allclose(model(x), MODEL(x), atol=1e-6)


def test_the_model_is_imported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from spyre_mlir import frontend

    imports: list[object] = []
    real = frontend.import_program

    def counted(*args: Any, **options: Any) -> Any:
        imports.append(args)
        return real(*args, **options)

    monkeypatch.setattr(frontend, "import_program", counted)
    model = compiled()
    assert all(agrees(model, rows) for rows in (2, 3, 9, 3))
    assert (len(imports), len(model.programs)) == (1, 3)
    assert agrees(model, 1)  # torch traces as if there were two rows or more
    assert len(imports) == 2


def test_the_text_has_symbols_and_that_of_a_specialisation_has_numbers() -> None:
    model = compiled()
    assert 'tensor<?x4xf32, #aten.extents<"s0">>' in model.mlir("aten")
    text = model.specialize(s0=7).mlir("aten")
    assert "tensor<7x4xf32>" in text
    assert "s0" not in text
    with pytest.raises(InputError, match=r"superdsc has no symbols\n  try: specialize\(s0=…\).mlir\('superdsc'\)"):
        model.mlir("superdsc")


def test_specialisations_are_kept_and_the_oldest_go_first() -> None:
    model = compiled(specializations=2)
    first, second = model.specialize(s0=2), model.specialize(s0=3)
    assert model.specialize(s0=2) is first
    model.specialize(s0=4)
    assert first in model.programs
    assert second not in model.programs
    assert model.specialize(s0=3) is not second
    with pytest.raises(InputError, match="specializations must be 1 or more, got 0"):
        compiled(specializations=0)


def test_a_specialisation_that_gives_way_goes_without_the_cycle_collector() -> None:
    model = compiled(specializations=1)
    first = model.specialize(s0=2)
    modules = [first._program.module, *first._lowered.modules.values()]
    parts = [weakref.ref(op) for module in modules for op in module.walk()]
    gc.disable()
    try:
        del first, modules
        model.specialize(s0=3)
        left = [part() for part in parts if part() is not None]
    finally:
        gc.enable()
    assert len(parts) > 30
    assert left == []


def test_a_weight_that_changes_is_seen_by_all() -> None:
    model = compiled()
    assert agrees(model, 2)
    assert agrees(model, 3)
    with torch.no_grad():
        MODEL.layer.weight.mul_(-2)
    assert agrees(model, 2)
    assert agrees(model, 3)


def test_verify_and_accuracy_are_those_of_the_sizes() -> None:
    model, x = compiled(), torch.randn(6, 4)
    assert model.verify(x)
    assert model.accuracy(x).worst < 0.01
    assert model.name == "Rows"
    assert model.symbols == {"s0": SymbolRange(2, 9)}


@pytest.mark.parametrize(("rows", "text"), [(10, "symbol s0 is 10, expected 2 to 9"), (1, "symbol s0 is 1")])
def test_sizes_out_of_range(rows: int, text: str) -> None:
    model = spyre_mlir.compile(exported())
    with pytest.raises(InputError, match=text):
        model(torch.ones(rows, 4))


def test_dynamic_shapes_go_with_a_module_and_examples() -> None:
    with pytest.raises(InputError, match="dynamic shapes need example inputs"):
        api.compile(MODEL, dynamic_shapes=SHAPES)
    with pytest.raises(InputError, match="knows its example arguments"):
        api.compile(exported(), dynamic_shapes=SHAPES)


def test_other_weights_lower_nothing_again(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(5)
    other, model = Rows().eval(), compiled(buckets=[6])
    model.specialize(s0=9)
    lowered: list[object] = []
    real = builders.lower_once
    monkeypatch.setattr(builders, "lower_once", lambda *args, **kwargs: lowered.append(args) or real(*args, **kwargs))
    bound = model.bind(other.state_dict())
    for rows in (4, 9):
        x = torch.randn(rows, 4)
        assert torch.allclose(bound(x), other(x), atol=1e-6)
        assert torch.allclose(model(x), MODEL(x), atol=1e-6)
    assert lowered == []
    x = torch.randn(7, 4)  # a program that is made later has them too
    assert torch.allclose(bound(x), other(x), atol=1e-6)
    assert len(lowered) == 1
    assert torch.allclose(bound(x[:1]), other(x[:1]), atol=1e-6)  # and so has one of a size that torch treats apart


def test_weights_that_do_not_fit_are_listed() -> None:
    with pytest.raises(BindingError, match=r"layer\.weight"):
        compiled().bind({"layer.bias": torch.zeros(3)})


class Banded(nn.Module):
    """Selects between a tensor of one number and positions, which are known for each size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[0])
        return x + torch.where(places < 4, torch.tensor(3).type_as(places), places)


def test_a_tensor_of_one_number_among_positions() -> None:
    banded = spyre_mlir.compile(Banded(), (torch.zeros(7),), dynamic_shapes=({0: Dim("rows", max=50)},))
    assert torch.equal(banded(torch.zeros(9)), Banded()(torch.zeros(9)))


class Typed(nn.Module):
    """Adds rows of a weight that a buffer names; positions of another buffer choose among its names for each size."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Embedding(3, 4)
        self.register_buffer("places", torch.arange(50)[None], persistent=False)
        self.register_buffer("types", torch.arange(50)[None] % 3, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        types = self.types.expand(x.shape[0], -1).gather(1, self.places[:, : x.shape[1]].expand(x.shape[0], -1))
        return x[..., None] + self.rows(types)


def test_weights_that_meet_buffers_of_the_program_with_symbols() -> None:
    model = Typed()
    typed = spyre_mlir.compile(
        model, (torch.zeros(2, 7),), dynamic_shapes=({1: Dim("n", max=50)},), numerics="exact", host_fallback="allow"
    )
    x = torch.rand(2, 9)
    torch.testing.assert_close(typed(x), model(x))
    other = Typed()
    bound = typed.bind(other.state_dict())
    for rows in (x, torch.rand(2, 11)):  # a size that was lowered before, and a new one
        torch.testing.assert_close(bound(rows), other(rows))
