"""Uses of torch's private interfaces: each does what our code relies on, in the version at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
import torch
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

from spyre_mlir.frontend import torch_private
from spyre_mlir.frontend.torch_private import (
    FUSED_ENCODER_LAYER,
    FakeTensorMode,
    composites_loaded,
    disable_modes,
    holders,
    is_composite,
    is_functional,
    is_level_change,
    is_real,
    pt2_records,
    return_and_correct_aliasing,
    schema_of,
    storage_identity,
)
from tests.unit.frontend.graphs import exported

aten = torch.ops.aten


@pytest.mark.parametrize("name", torch_private.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(torch_private, name) is not None


def test_composites_are_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    usual, native = dict(cast(Any, torch.export.default_decompositions())), cast(Any, torch)._C
    listed, ask = list[str](), native._dispatch_get_registrations_for_dispatch_key
    name = "_dispatch_get_registrations_for_dispatch_key"
    monkeypatch.setattr(native, name, lambda key: [listed.append(key), ask(key)][1])
    with composites_loaded():
        assert dict(cast(Any, torch.export.default_decompositions())).keys() == usual.keys()
    assert listed == ["CompositeImplicitAutograd"]


def test_composites_registered_behind_the_block_are_found() -> None:
    with pytest.raises(ZeroDivisionError), composites_loaded():
        _ = 1 / 0
    library = torch.library.Library("composites_loaded", "DEF")
    library.define("twice(Tensor x) -> Tensor")
    library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
    table = dict(cast(Any, torch.export.default_decompositions()))
    assert torch.ops.composites_loaded.twice.default in table
    library._destroy()  # pyright: ignore[reportPrivateUsage]


def test_the_fused_encoder_layer_is_torchs() -> None:
    assert FUSED_ENCODER_LAYER is torch._transformer_encoder_layer_fwd


def test_aliases_are_as_the_schema_promises() -> None:
    x = torch.zeros(2)
    assert return_and_correct_aliasing(aten.add_.Tensor, (x, 1), {}, torch.ones(2)) is x


def test_real_numbers_are_computed_in_the_middle_of_a_trace() -> None:
    seen: list[list[float]] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        with disable_modes():
            seen.append((torch.ones(2) + 1).tolist())
        return x * 2

    make_fx(function, tracing_mode="fake")(torch.ones(2))
    assert seen == [[2, 2]]


def test_functional_tensors_stand_for_others() -> None:
    seen: list[bool] = []
    torch.func.functionalize(lambda x: seen.append(is_functional(x)))(torch.ones(2))
    assert seen == [True]
    assert is_functional(torch.ones(2)) is False


def test_views_share_a_storage_also_without_elements() -> None:
    x, empty = torch.ones(4), torch.empty(0)
    assert storage_identity(x) == storage_identity(x[2:])
    assert storage_identity(x) != storage_identity(x.clone())
    assert storage_identity(empty) != storage_identity(torch.empty(0))


def test_schemas_and_composites() -> None:
    assert [a.name for a in schema_of(aten.add.Tensor).arguments] == ["self", "other", "alpha"]
    assert is_composite(aten.linear.default) is True
    assert is_composite(aten.mm.default) is False


def test_holders_are_parameters_and_buffers_of_every_module() -> None:
    model = nn.Sequential(nn.Linear(2, 3, bias=False), nn.BatchNorm1d(3))
    found = holders(model)
    assert [set(names) for names in found] == [
        *(set[str](), set[str](), {"weight", "bias"}, set[str](), {"weight", "bias"}),
        {"running_mean", "running_var", "num_batches_tracked"},
    ]
    found[2]["weight"] = None
    assert model[0].weight is None, "they are the modules' own"


def test_members_of_a_saved_program(tmp_path: Path) -> None:
    torch.export.save(exported(nn.ReLU(), torch.ones(2)), tmp_path / "relu.pt2")
    records = pt2_records(tmp_path / "relu.pt2")
    assert records is not None
    names, read = records
    assert "archive_format" in names
    assert read("archive_format") == b"pt2"
    (tmp_path / "other.pt2").write_text("no archive")
    assert pt2_records(tmp_path / "other.pt2") is None


def test_real_tensors_have_elements() -> None:
    assert is_real(torch.ones(2)) is True
    assert is_real(torch.ones(2, device="meta")) is False
    with FakeTensorMode():
        assert is_real(torch.ones(2)) is False


def test_maps_begin_and_end_in_an_exported_graph() -> None:
    class Mapped(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.vmap(torch.exp)(x)

    graph = exported(Mapped(), torch.ones(2, 4)).graph_module.graph
    names = [node.target.__name__ for node in graph.nodes if is_level_change(node.target)]
    assert {"_vmap_increment_nesting", "_vmap_decrement_nesting"} <= set(names)
    assert not any(is_level_change(node.target) for node in exported(nn.ReLU(), torch.ones(2)).graph_module.graph.nodes)
