"""Conversions of plugins at import: what they are told, what they build with, and what they may give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch.fx import Node
from xdsl.dialects.builtin import TensorType, f32, i64
from xdsl.ir import Block, SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_value import raw_of
from spyre_mlir.errors import RegistrationError
from spyre_mlir.frontend.lowering.plugin_conversion import ImportBuild, converted, node_info
from spyre_mlir.plugins import registry
from tests.unit.frontend.graphs import calls, placeholders, traced

X = torch.arange(6.0).reshape(2, 3)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    with registry.isolated():
        yield


class Function:
    """A function of x and y under construction, and the node of it to convert."""

    def __init__(self, function: Callable[..., Any]) -> None:
        graph = traced(function, X, X + 1)
        self.node = calls(graph)[0]
        self.ops: list[AtenOp] = []
        self.values = dict(zip(placeholders(graph), Block(arg_types=[TensorType(f32, [2, 3])] * 2).args, strict=True))

    def ssa(self, node: Node) -> SSAValue:
        return self.values[node]

    def add(self, op: AtenOp) -> AtenOp:
        self.ops.append(op)
        return op

    @property
    def converted(self) -> list[SSAValue] | None:
        return converted(self.node, self.ssa, ImportBuild(self.add))


def test_nothing_registered_converts_nothing() -> None:
    assert Function(lambda x, y: torch.add(x, y)).converted is None


def test_a_conversion_gives_the_results() -> None:
    registry.register_op("add.Tensor")(lambda node, build: [build.call("mul.Tensor", *node.args)])
    made = Function(lambda x, y: torch.add(x, y))
    assert made.converted == [made.ops[0].results[0]]
    (op,) = made.ops
    assert (op.overload, list(op.operands)) == ("mul.Tensor", list(made.values.values()))


def test_the_highest_priority_converts() -> None:
    registry.register_op("add.Tensor")(lambda node, build: [node.args[1]])
    registry.register_op("add.Tensor", priority=1)(lambda node, build: (node.args[0],))
    made = Function(lambda x, y: torch.add(x, y))
    assert list(made.converted or ()) == [next(iter(made.values.values()))]


def test_what_a_conversion_is_told() -> None:
    made = Function(lambda x, y: torch.add(x, y, alpha=2))
    x, y = made.values
    told = node_info(made.node, made.ssa)
    assert (told.name, told.op, told.target) == ("add", "call_function", torch.ops.aten.add.Tensor)
    assert (told.args, told.kwargs) == ((made.values[x], made.values[y]), {"alpha": 2})
    assert told.input_metas == [
        registry.TensorMeta(x.name, (2, 3), "float32"),
        registry.TensorMeta(y.name, (2, 3), "float32"),
    ]
    assert told.output_metas == [registry.TensorMeta("add", (2, 3), "float32")]
    assert told.attrs == {"alpha": 2}


def test_an_input_that_is_read_twice_is_told_twice() -> None:
    made = Function(lambda x, y: torch.stack([x, y, x]))
    names = [meta.name for meta in node_info(made.node, made.ssa).input_metas]
    x, y = (n.name for n in made.values)
    assert names == [x, y, x]


def test_several_results_are_told_and_given() -> None:
    made = Function(lambda x, y: torch.max(x, 1))
    told = node_info(made.node, made.ssa)
    name = made.node.name
    assert told.output_metas == [registry.TensorMeta(name, (2,), "float32"), registry.TensorMeta(name, (2,), "int64")]
    assert told.attrs == {"dim": 1, "keepdim": False}
    places = Block(arg_types=[TensorType(i64, [2])]).args[0]
    registry.register_op("max.dim")(lambda node, build: [build.call("amax", node.args[0], dim=(1,)), places])
    assert made.converted == [made.ops[0].results[0], places]


@pytest.mark.parametrize(
    ("convert", "given"),
    [
        (lambda node, build: node.args[0], "tensor<2x3xf32>"),
        (lambda node, build: [], ""),
        (lambda node, build: [node.args[0], node.args[0]], "tensor<2x3xf32>, tensor<2x3xf32>"),
        (lambda node, build: [build.cast(node.args[0], "f16")], "tensor<2x3xf16>"),
        (lambda node, build: [3], "int"),
    ],
)
def test_other_results_than_the_operation_has_are_refused(convert: Callable[..., Any], given: str) -> None:
    registry.register_op("add.Tensor")(convert)
    made = Function(lambda x, y: torch.add(x, y))
    with pytest.raises(RegistrationError) as refused:
        _ = made.converted
    owner = f"{convert.__module__}.{convert.__qualname__}"
    assert refused.value.message == f"{owner} converts add.Tensor to {given}; the operation has tensor<2x3xf32>"
    assert refused.value.where == "add.Tensor at node 'add'"
    assert refused.value.hint == "give a list with one value per result, or an OpNode"


def test_a_refusal_says_all_results_that_the_operation_has() -> None:
    registry.register_op("max.dim")(lambda node, build: [])
    with pytest.raises(RegistrationError, match=r"the operation has tensor<2xf32>, tensor<2xi64>\n"):
        _ = Function(lambda x, y: torch.max(x, 1)).converted


def test_ops_of_the_table_are_written_as_they_are_called() -> None:
    made = Function(lambda x, y: torch.add(x, y))
    (x, _), build = made.values.values(), ImportBuild(made.add)
    result = build.call("gelu", x)
    assert [op.overload for op in made.ops] == ["gelu"], "a pass takes it apart"
    assert raw_of(result) is made.ops[0].results[0]
    assert (result.shape, result.element) == ((2, 3), "f32")


def test_ops_without_a_shape_of_their_own_are_taken_apart() -> None:
    made = Function(lambda x, y: torch.add(x, y))
    (x, _), build = made.values.values(), ImportBuild(made.add)
    result = build.call("relu6", x)
    assert "relu6" not in [op.overload for op in made.ops]
    assert raw_of(result) is made.ops[-1].results[0]


def test_an_op_that_the_table_lacks_is_refused() -> None:
    made = Function(lambda x, y: torch.add(x, y))
    with pytest.raises(LookupError, match="neither the op table nor torch has an operator nonesuch; import the module"):
        ImportBuild(made.add).call("nonesuch")


def described(**changes: Any) -> Callable[[registry.NodeInfo], registry.OpNode]:
    def convert(node_info: registry.NodeInfo) -> registry.OpNode:
        facts = {"inputs": node_info.input_metas, "outputs": node_info.output_metas, "attrs": node_info.attrs} | changes
        return registry.OpNode(name=node_info.name, op_type="custom.weighted_sum", **facts)

    return convert


def test_a_described_op_has_its_own_type_and_attributes() -> None:
    registry.register_op("add.Tensor")(described(attrs={"weight": 0.5, "modes": ["near", None], "sizes": (2, 3)}))
    made = Function(lambda x, y: torch.add(x, y))
    assert made.converted == [made.ops[0].results[0]]
    (op,) = made.ops
    assert (op.name, op.overload, list(op.operands)) == (
        "aten.call",
        "custom::weighted_sum",
        list(made.values.values()),
    )
    x, y = made.values.values()
    assert op.arguments() == {"inputs": [x, y], "weight": 0.5, "modes": ["near", None], "sizes": (2, 3)}


def test_a_described_op_may_take_its_inputs_in_another_order() -> None:
    registry.register_op("add.Tensor")(
        lambda node: registry.OpNode("sum", "my_sum", node.input_metas[::-1], node.output_metas)
    )
    made = Function(lambda x, y: torch.add(x, y))
    assert made.converted == [made.ops[0].results[0]]
    assert (made.ops[0].overload, list(made.ops[0].operands)) == ("my_sum", list(made.values.values())[::-1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": [registry.TensorMeta("z", (2, 3), "float32")]}, "with the input z, which is none of "),
        ({"outputs": [registry.TensorMeta("add", (2, 4), "float32")]}, "with other outputs"),
        ({"outputs": [registry.TensorMeta("add", (2, 3), "float16")]}, "with other outputs"),
        ({"outputs": []}, "with other outputs"),
        ({"attrs": {"by": object()}}, "with an attribute that has no text: no attribute spells <object"),
    ],
)
def test_a_described_op_that_does_not_fit_the_call_is_refused(changes: dict[str, Any], message: str) -> None:
    registry.register_op("add.Tensor")(described(**changes))
    with pytest.raises(RegistrationError, match=f"converts add.Tensor to an OpNode {message}") as refused:
        _ = Function(lambda x, y: torch.add(x, y)).converted
    assert refused.value.where == "add.Tensor at node 'add'"
