"""Uses of torch's private interfaces: each does what our code relies on, in the version at hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo import config
from torch._dynamo.convert_frame import ConvertFrameAssert
from torch.fx import Graph
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree

from spyre_mlir.frontend import torch_private
from spyre_mlir.frontend.torch_private import (
    FUSED_ENCODER_LAYER,
    FakeTensorMode,
    _innermost,
    compile_id,
    disable_modes,
    holders,
    inductor_mode,
    is_composite,
    is_functional,
    is_real,
    is_tree_node,
    pt2_records,
    recompile_reason,
    register_dataclass,
    return_and_correct_aliasing,
    schema_of,
    source_name,
    storage_identity,
    trace_recurrent_layers_for,
    unregister_dataclass,
)
from tests.unit.frontend.graphs import exported

aten = torch.ops.aten


@pytest.mark.parametrize("name", torch_private.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(torch_private, name) is not None


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


@dataclass
class Pair:
    left: Any
    right: Any = None


@dataclass
class Other:
    value: Any


def test_torch_sees_into_a_dataclass_while_it_is_registered() -> None:
    names = _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE
    before = dict(names)
    assert not is_tree_node(Pair)
    for _ in range(2):
        register_dataclass(Pair)
        register_dataclass(Other)
        assert is_tree_node(Pair)
        assert _pytree.tree_leaves(Pair(1, [2, 3])) == [1, 2, 3]
        assert names == before, "registering leaves no class behind under the name that nameless ones share"
        unregister_dataclass(Pair)
        unregister_dataclass(Other)
        assert not is_tree_node(Pair)
        assert Pair not in _pytree.SUPPORTED_SERIALIZED_TYPES
    unregister_dataclass(Pair)


def test_a_name_that_another_class_had_stays_its() -> None:
    names, key = _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE, _pytree.NO_SERIALIZED_TYPE_NAME_FOUND
    before = names.get(key)
    try:
        names[key] = Other
        register_dataclass(Pair)
        assert names[key] is Other
    finally:
        unregister_dataclass(Pair)
        names.pop(key)
        if before is not None:
            names[key] = before


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


@pytest.fixture
def tracer(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, int]]:
    """What Dynamo's tracer finds when it is called: whether it may trace recurrent layers, and the frames to skip."""
    seen: list[tuple[bool, int]] = []

    def trace(self: Any, *args: Any, skip: int = 0, **kwargs: Any) -> tuple[Any, ...]:
        seen.append((config.allow_rnn, skip))
        return args

    monkeypatch.setattr(ConvertFrameAssert, "__call__", trace)
    return seen


def test_recurrent_layers_are_traced_for_one_back_end(tracer: list[tuple[bool, int]]) -> None:
    def mine() -> None: ...

    trace_recurrent_layers_for(mine)
    once = ConvertFrameAssert.__call__
    trace_recurrent_layers_for(mine)
    assert ConvertFrameAssert.__call__ is once
    for back_end in (mine, SimpleNamespace(compiler_fn=SimpleNamespace(func=mine)), print):
        assert once(SimpleNamespace(_torchdynamo_orig_backend=back_end), "frame", skip=2) == ("frame",)  # type: ignore[arg-type]
    once(SimpleNamespace(_torchdynamo_orig_backend=print))  # type: ignore[arg-type, call-arg]
    assert tracer == [(True, 3), (True, 3), (False, 3), (False, 1)]
    assert config.allow_rnn is False


def test_wrappers_of_a_back_end_are_looked_through() -> None:
    for name in ("_torchdynamo_orig_backend", "compiler_fn", "func"):
        assert _innermost(SimpleNamespace(**{name: SimpleNamespace(func=print)})) is print
    assert _innermost(print) is print


def test_modes_of_torch_compile_by_their_settings() -> None:
    from torch._inductor import list_mode_options

    options = list_mode_options()["reduce-overhead"]
    assert inductor_mode(options) == "reduce-overhead"
    assert inductor_mode({}) is None
    assert inductor_mode({"nonesuch": True}) is None


def test_why_dynamo_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = [
        SimpleNamespace(compile_id="0/1", recompile_reason="an older   run"),
        SimpleNamespace(compile_id="0/1", recompile_reason="size   mismatch\nand more"),
        SimpleNamespace(compile_id="0/1", recompile_reason=None),
        SimpleNamespace(compile_id="0/0", recompile_reason=None),
    ]
    monkeypatch.setattr(torch_private, "get_compilation_metrics", lambda: iter(metrics))
    assert recompile_reason("0/1") == "size mismatch"
    assert recompile_reason("0/0") == ""
    assert recompile_reason("1/0") == ""


def test_the_compilation_at_hand_has_a_name() -> None:
    seen: list[str] = []

    def back_end(graph: Any, inputs: Any) -> Any:
        seen.append(compile_id())
        return graph.forward

    torch._dynamo.reset()
    torch.compile(lambda x: x + 1, backend=back_end)(torch.ones(2))
    assert len(seen) == 1
    assert seen[0].partition("/")[2] == "0"
    assert compile_id() == ""


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (SimpleNamespace(name="L['x']"), "L['x']"),
        (SimpleNamespace(name=lambda: "L['self']._buffers['mask']"), "L['self']._buffers['mask']"),
        (None, ""),
    ],
)
def test_where_an_input_comes_from(source: object, name: str) -> None:
    node = Graph().placeholder("x")
    assert source_name(node) == ""
    node.meta["grapharg"] = SimpleNamespace(source=source)
    assert source_name(node) == name


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
