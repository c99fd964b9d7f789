"""The extension guide of PyTorch-IR, section by section, with `torch_ir` replaced by `spyre_mlir`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import spyre_mlir
from spyre_mlir import OpNode, TensorMeta, export_model, extract_ir
from spyre_mlir.analyzer import NodeInfo
from spyre_mlir.errors import RegistrationError
from spyre_mlir.frontend.lowering.plugin_conversion import UnknownOperationWarning
from spyre_mlir.ops import register_executor, register_op
from spyre_mlir.ops.registry import get_conversion_fn, get_execution_fn
from spyre_mlir.plugins import registry

X, Y = torch.linspace(-3, 3, 4 * 64).reshape(4, 64), torch.linspace(2, -1, 4 * 64).reshape(4, 64)


@pytest.fixture(autouse=True)
def operators() -> Iterator[None]:
    library = torch.library.Library("custom", "DEF")
    for signature, meaning in (
        ("gated(Tensor gate, Tensor value, float by=1.0) -> Tensor", lambda g, v, by=1.0: torch.sigmoid(g) * v * by),
        ("top(Tensor x, int k=2, int dim=-1) -> (Tensor, Tensor)", lambda x, k=2, dim=-1: tuple(x.topk(k, dim))),
    ):
        library.impl(library.define(signature), meaning, "CompositeExplicitAutograd")
    with registry.isolated():
        yield
    library._destroy()


class Model(torch.nn.Module):
    """A function of x and y."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return self.function(x, y)


def gated(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.ops.custom.gated(x, y, by=3.0)


def top(x: torch.Tensor, y: torch.Tensor) -> Any:
    return torch.ops.custom.top(x)


def compiled(function: Any) -> Any:
    return spyre_mlir.compile(Model(function), (X, Y), host_fallback="allow", numerics="exact")


def as_it_is(node_info: NodeInfo) -> OpNode:
    return OpNode(
        name=node_info.name,
        op_type="custom.gated",
        inputs=node_info.input_metas,
        outputs=node_info.output_metas,
        attrs={**node_info.attrs, "extra": "kept"},
    )


def test_1_aten_operators_need_no_registration() -> None:
    model = compiled(lambda x, y: torch.sigmoid(x) * y)
    assert registry.registered_ops() == []
    assert model.host_steps == ()
    assert model.verify(X, Y)


def test_2_2_a_conversion_goes_before_the_default_one() -> None:
    assert 'aten.call "custom::gated"(%x, %y) {gate' in str(extract_ir(Model(gated), (X, Y)).module)
    register_op("custom.gated")(as_it_is)
    assert 'extra = "kept"' in str(extract_ir(Model(gated), (X, Y)).module)


def test_2_2_an_executor_goes_before_the_operator() -> None:
    torch.testing.assert_close(compiled(gated)(X, Y), gated(X, Y))
    register_executor("custom.gated")(lambda inputs, attrs: [inputs[0] * 0 + 7])
    torch.testing.assert_close(compiled(gated)(X, Y), torch.full_like(X, 7))


@pytest.mark.parametrize("name", ["custom.gated", "custom::gated", "custom.gated.default"])
def test_2_3_names_in_every_spelling(name: str) -> None:
    register_executor(name)(lambda inputs, attrs: [inputs[0] * 0 + 7])
    torch.testing.assert_close(compiled(gated)(X, Y), torch.full_like(X, 7))


@pytest.mark.parametrize("name", ["aten.relu.default", "aten.relu", "aten::relu", "relu"])
def test_2_3_names_of_aten_in_every_spelling(name: str) -> None:
    register_executor(name)(lambda inputs, attrs: [inputs[0] * 0 + 7])
    torch.testing.assert_close(compiled(lambda x, y: torch.relu(x) + y)(X, Y), 7 + Y)


def test_3_1_an_executor_gets_lists_and_gives_one() -> None:
    told: list[Any] = []

    @register_executor("custom.gated")
    def execute(inputs: list[torch.Tensor], attrs: dict[str, Any]) -> list[torch.Tensor]:
        told.append(([type(i) for i in inputs], attrs))
        return [torch.sigmoid(inputs[0]) * inputs[1] * attrs.get("by", 1.0)]

    torch.testing.assert_close(compiled(gated)(X, Y), gated(X, Y))
    assert told[0] == ([torch.Tensor, torch.Tensor], {"by": 3.0})


def test_3_1_a_plain_word_is_a_name_whose_operator_may_come_later() -> None:
    register_executor("my_custom_op")(lambda inputs, attrs: [inputs[0]])
    assert get_execution_fn("my_custom_op") is not None
    with pytest.warns(UnknownOperationWarning, match="registered for my_custom_op: torch has no such operator"):
        compiled(gated)


def test_3_2_an_executor_that_gives_no_list_is_named() -> None:
    register_executor("custom.gated")(lambda inputs, attrs: inputs[0])
    with pytest.raises(RegistrationError, match=r"custom::gated gives Tensor, not a list of tensors"):
        compiled(gated)(X, Y)


def test_3_3_an_executor_with_two_outputs() -> None:
    @register_executor("custom.top")
    def execute(inputs: list[torch.Tensor], attrs: dict[str, Any]) -> list[torch.Tensor]:
        values, indices = inputs[0].topk(attrs.get("k", 1), dim=attrs.get("dim", -1))
        return [values, indices]

    values, indices = compiled(top)(X, Y)
    torch.testing.assert_close(values, X.topk(2).values)
    assert torch.equal(indices, X.topk(2).indices)


def test_4_a_conversion_gives_an_op_of_its_own_type_with_more_attributes() -> None:
    @register_op("custom.gated")
    def convert(node_info: NodeInfo) -> OpNode:
        metas = node_info.input_metas
        return OpNode(node_info.name, "my_gate", metas[::-1], node_info.output_metas, {"power": 2, "mode": "fast"})

    told: list[Any] = []

    @register_executor("my_gate")
    def execute(inputs: list[torch.Tensor], attrs: dict[str, Any]) -> list[torch.Tensor]:
        told.append(attrs)
        return [inputs[0] - inputs[1]]

    model = compiled(gated)
    assert 'aten.call "my_gate"(%y, %x) {inputs = #aten.operands<2>, power = 2 : i64, mode = "fast"}' in model.mlir(
        "aten"
    )
    assert [step.op for step in model.host_steps] == ["my_gate"]
    torch.testing.assert_close(model(X, Y), Y - X)
    assert told[0] == {"power": 2, "mode": "fast"}
    results = model._run("aten", [X.double().numpy(), Y.double().numpy()])
    torch.testing.assert_close(torch.tensor(results[0]), (Y - X).double())


def test_4_the_op_is_in_the_saved_program_too(tmp_path: Path) -> None:
    register_op("custom.gated")(as_it_is)
    register_executor("custom.gated")(lambda inputs, attrs: [inputs[0] * attrs["by"]])
    compiled(gated).save(tmp_path / "bundle")
    torch.testing.assert_close(spyre_mlir.load(tmp_path / "bundle")(X, Y), X * 3, rtol=1e-3, atol=1e-3)


def test_4_1_what_a_conversion_is_told() -> None:
    told: list[NodeInfo] = []

    @register_op("custom.gated")
    def convert(node_info: NodeInfo) -> OpNode:
        told.append(node_info)
        return as_it_is(node_info)

    extract_ir(Model(gated), (X, Y))
    (node,) = told
    assert (node.name, node.op, node.target) == ("gated", "call_function", torch.ops.custom.gated.default)
    assert len(node.args) + len(node.kwargs) == 3
    assert node.input_metas == [TensorMeta(name, (4, 64), "float32") for name in "xy"]
    assert node.output_metas == [TensorMeta("gated", (4, 64), "float32")]


def test_4_2_attributes_have_the_defaults_of_the_schema() -> None:
    told: list[Any] = []

    @register_op("custom.top")
    def convert(node_info: NodeInfo) -> OpNode:
        told.append(node_info.attrs)
        return OpNode(node_info.name, "custom.top", node_info.input_metas, node_info.output_metas, node_info.attrs)

    extract_ir(Model(top), (X, Y))
    assert told == [{"k": 2, "dim": -1}]


def test_5_conversion_and_executor_of_one_operator() -> None:
    register_op("custom.gated")(as_it_is)

    @register_executor("custom.gated")
    def execute(inputs: list[torch.Tensor], attrs: dict[str, Any]) -> list[torch.Tensor]:
        gate, value = inputs
        assert attrs["extra"] == "kept"
        return [torch.sigmoid(gate) * value * attrs["by"]]

    model = compiled(gated)
    torch.testing.assert_close(model(X, Y), gated(X, Y))
    assert model.verify(X, Y)


def test_6_a_module_registers_when_it_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "my_ops"
    package.mkdir()
    (package / "__init__.py").write_text("from . import gating\n")
    (package / "gating.py").write_text(
        "from spyre_mlir.ops import register_executor\n\n"
        '@register_executor("custom.gated")\n'
        "def execute(inputs, attrs):\n    return [inputs[0] * 0 + 7]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_ops", raising=False)
    __import__("my_ops")
    torch.testing.assert_close(compiled(gated)(X, Y), torch.full_like(X, 7))


def test_7_1_the_graph_of_torch_can_be_looked_at() -> None:
    exported = export_model(Model(gated), (X, Y), strict=False)
    calls = [(n.name, n.target) for n in exported.graph_module.graph.nodes if n.op == "call_function"]
    assert calls == [("gated", torch.ops.custom.gated.default)]


def test_7_2_what_is_registered_can_be_looked_up() -> None:
    register_op("custom.gated")(as_it_is)
    assert get_conversion_fn("custom.gated") is as_it_is
    assert get_execution_fn("custom.gated") is None


def test_7_3_the_schema_is_torch_s() -> None:
    schema = torch.ops.custom.gated.default._schema
    assert [(a.name, str(a.type)) for a in schema.arguments] == [
        ("gate", "Tensor"),
        ("value", "Tensor"),
        ("by", "float"),
    ]


def test_8_1_an_executor_of_an_aten_operator_is_called() -> None:
    called: list[int] = []

    @register_executor("aten.relu.default")
    def execute(inputs: list[torch.Tensor], attrs: dict[str, Any]) -> list[torch.Tensor]:
        called.append(len(inputs))
        return [inputs[0].clamp(min=0)]

    model = compiled(lambda x, y: torch.relu(x) * y)
    assert [(s.op, s.reason) for s in model.host_steps] == [("aten.relu", "an executor is registered for it")]
    torch.testing.assert_close(model(X, Y), torch.relu(X) * Y)
    assert called == [1]


def test_8_2_inputs_are_in_the_order_of_the_graph() -> None:
    register_executor("custom.gated")(lambda inputs, attrs: [inputs[0] - inputs[1]])
    torch.testing.assert_close(compiled(gated)(X, Y), X - Y)


def test_8_3_an_executor_gets_the_defaults_of_the_schema() -> None:
    told: list[Any] = []

    @register_executor("custom.top")
    def execute(inputs: list[torch.Tensor], attrs: dict[str, Any]) -> list[torch.Tensor]:
        told.append(attrs)
        return list(inputs[0].topk(attrs["k"], attrs["dim"]))

    compiled(top)(X, Y)
    assert told[0] == {"k": 2, "dim": -1}
