"""The calling convention of an exported program: names, kinds, order, ties, results and their trees."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.export.graph_signature import (
    ConstantArgument,
    CustomObjArgument,
    InputKind,
    InputSpec,
    SymIntArgument,
    TensorArgument,
    TokenArgument,
)
from torch.fx import Graph
from torch.utils import _pytree

from spyre_mlir.frontend.capture.decomposition import decompose
from spyre_mlir.frontend.capture.unsupported import HIGHER, UnsupportedNode
from spyre_mlir.frontend.lowering.signature import (
    PlaceholderSlot,
    Signature,
    _slot,
    _ties,
    output_names,
    read_signature,
    strange_inputs,
)
from spyre_mlir.frontend.program.program import Argument, Placement, TreeConstant
from spyre_mlir.frontend.symbolic.sizes import Sizes
from tests.unit.frontend.graphs import exported

F32, I64 = torch.float32, torch.int64


class Everything(nn.Module):
    """Weights, tables and buffers of all kinds, inputs called as some of them, and writes."""

    def __init__(self) -> None:
        super().__init__()
        self.number = torch.tensor([2.0])
        self.register_buffer("kept", torch.ones(3))
        self.register_buffer("count", torch.zeros(3, dtype=torch.int64))
        self.register_buffer("table", torch.arange(3.0), persistent=False)
        self.register_buffer("steps", torch.zeros(1), persistent=False)
        self.weight = nn.Parameter(torch.ones(3))
        self.twin = nn.Parameter(self.weight.data)
        self.empty = nn.Parameter(torch.empty(0))

    def forward(self, weight: torch.Tensor, factor: float, *, count: torch.Tensor, extra: object = None) -> Any:
        self.count.add_(1)
        self.steps.add_(1)
        weight.add_(1)
        total = weight * self.weight * self.twin * self.kept * self.table * self.number * factor + self.empty.sum()
        return {"sum": total, "rest": (None, self.count + 1, 7, count.as_strided((2,), (2,), 1))}


MODEL = Everything()


@pytest.fixture(scope="module")
def signature() -> Signature:
    program = exported(MODEL, torch.zeros(3), 2.5, count=torch.ones(2, 3), extra=None)
    return read_signature(decompose(program), Sizes())


def test_arguments_are_inputs_then_parameters_buffers_and_constants(signature: Signature) -> None:
    assert [s.argument for s in signature.slots] == [
        Argument("weight_in", "input", (3,), F32, True),
        Argument("count_in", "input", (2, 3), F32, placement=Placement((3, 1), 0)),
        Argument("weight", "parameter", (3,), F32, persistent=True),
        Argument("empty", "parameter", (0,), F32, persistent=True),
        Argument("kept", "buffer", (3,), F32, persistent=True),
        Argument("count", "buffer", (3,), I64, True, persistent=True),
        Argument("table", "buffer", (3,), F32),
        Argument("steps", "buffer", (1,), F32, True),
        Argument("number", "constant", (1,), F32),
    ]
    assert [s.node.op for s in signature.slots] == ["placeholder"] * 9


def test_tables_of_the_program_fold_and_weights_and_what_is_written_do_not(signature: Signature) -> None:
    assert [s.argument.name for s in signature.slots if s.foldable] == ["table", "number"]


def test_the_model_owns_the_values_of_all_but_inputs(signature: Signature) -> None:
    values = {s.argument.name: s.value for s in signature.slots}
    assert [name for name, value in values.items() if value is None] == ["weight_in", "count_in"]
    assert torch.equal(values["number"], MODEL.number)  # type: ignore[arg-type]
    weight = values["weight"]
    assert weight is not None
    assert weight.data_ptr() == MODEL.weight.data_ptr()
    assert not weight.requires_grad


def test_weights_on_one_memory_are_tied_to_the_first(signature: Signature) -> None:
    (tied,) = signature.ties
    assert tied.name == "p_twin"
    assert signature.ties[tied].name == "p_weight"


def test_leaves_of_the_inputs_are_arguments_or_constants(signature: Signature) -> None:
    first, factor, count, extra = signature.input_leaves
    assert (first, count) == (signature.slots[0].argument, signature.slots[1].argument)
    assert (factor, extra) == (TreeConstant("factor", 2.5), TreeConstant("extra", None))
    assert signature.input_tree.num_leaves == 4


def test_results_are_the_outputs_and_then_what_is_written(signature: Signature) -> None:
    assert [(r.name, r.mutates) for r in signature.results] == [
        ("sum", None),
        ("rest.1", None),
        ("rest.3", None),
        ("new.count", "count"),
        ("new.steps", "steps"),
        ("new.weight_in", "weight_in"),
    ]
    assert signature.output_leaves == (0, TreeConstant("rest.0", None), 1, TreeConstant("rest.2", 7), 2)
    shapes = [tuple(r.node.meta["val"].shape) for r in signature.results]
    assert shapes == [(3,), (3,), (2,), (3,), (1,), (3,)]
    assert signature.output_tree.unflatten("abcde") == {"sum": "a", "rest": ("b", "c", "d", "e")}


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (0, ["output"]),
        ((0, 1), ["output.0", "output.1"]),
        ({"logits": 0, "states": [1, (2,)]}, ["logits", "states.0", "states.1.0"]),
        ({3: 0}, ["output.3"]),
    ],
)
def test_results_are_named_by_their_path(value: object, names: list[str]) -> None:
    leaves, tree = _pytree.tree_flatten(value)
    assert output_names(tree, len(leaves)) == names


class Unnamed:
    """A structure that does not say what its parts are called."""

    def __init__(self, *parts: object) -> None:
        self.parts = parts


def test_parts_of_a_class_without_named_fields_are_numbered() -> None:
    _pytree.register_pytree_node(Unnamed, lambda u: (list(u.parts), None), lambda parts, _: Unnamed(*parts))
    assert output_names(_pytree.tree_flatten(Unnamed(1, 2))[1], 2) == ["output.0", "output.1"]


def test_inputs_that_are_no_tensors_are_strange() -> None:
    specs = [
        InputSpec(InputKind.USER_INPUT, TensorArgument("x"), None),
        InputSpec(InputKind.USER_INPUT, ConstantArgument("n", 3), None),
        InputSpec(InputKind.TOKEN, TokenArgument("t"), None),
        InputSpec(InputKind.CUSTOM_OBJ, CustomObjArgument("obj", "Script"), "obj"),
        InputSpec(InputKind.USER_INPUT, SymIntArgument("s"), None),
    ]
    program: Any = SimpleNamespace(graph_signature=SimpleNamespace(input_specs=specs))
    assert strange_inputs(program) == [
        UnsupportedNode("input t", "an input of kind TOKEN has no form", "t", HIGHER),
        UnsupportedNode("input obj", "an input of kind CUSTOM_OBJ has no form", "obj", HIGHER),
    ]


def slot_of(value: object, kind: InputKind = InputKind.PARAMETER, *, persistent: bool | None = None) -> PlaceholderSlot:
    """The slot of something that the state of a program holds by the name ``held``."""
    node = Graph().placeholder("p_held")
    node.meta["val"] = torch.empty(2, 3)
    program: Any = SimpleNamespace(state_dict={"held": value}, constants={}, complex_inputs=frozenset())
    return _slot(program, InputSpec(kind, TensorArgument("p_held"), "held", persistent), node, str.upper, False)


def test_a_weight_without_elements_of_its_own_has_no_value() -> None:
    meta = torch.empty(2, 3, device="meta")
    slot = slot_of(meta)
    assert (slot.argument.name, slot.value, slot.foldable) == ("held", None, False)
    assert slot.memory is not None
    assert slot.memory[1:] == (F32, (2, 3), (3, 1), 0)
    absent = slot_of(None)
    assert (absent.value, absent.memory, absent.argument.shape) == (None, None, (2, 3))
    assert slot_of(torch.empty(0)).memory is None


@pytest.mark.parametrize(
    ("kind", "persistent", "foldable"),
    [
        (InputKind.CONSTANT_TENSOR, None, True),
        (InputKind.BUFFER, False, True),
        (InputKind.BUFFER, True, False),
        (InputKind.PARAMETER, None, False),
    ],
)
def test_what_belongs_to_the_program_is_foldable(kind: InputKind, persistent: bool | None, foldable: bool) -> None:
    assert slot_of(torch.ones(2, 3), kind, persistent=persistent).foldable is foldable


def slots(*memories: tuple[object, ...] | None, value: torch.Tensor | None) -> list[PlaceholderSlot]:
    graph, argument = Graph(), Argument("w", "parameter", (3,), F32)
    return [PlaceholderSlot(graph.placeholder(f"w{n}"), argument, value, False, m) for n, m in enumerate(memories)]


def test_a_signature_does_not_change(signature: Signature) -> None:
    for value in (signature, signature.slots[0], signature.results[0]):
        with pytest.raises(FrozenInstanceError):
            value.slots = value.node = ()  # type: ignore[union-attr, misc, assignment]


def test_ties_go_to_the_first_of_equal_memory() -> None:
    a, b = (1, F32, (3,), (1,), 0), (1, F32, (3,), (1,), 3)
    first, _, again, last, apart, apart_too = made = slots(a, b, a, a, None, None, value=torch.ones(3))
    assert _ties(made) == {again.node: first.node, last.node: first.node}
    assert apart.node is not apart_too.node


def test_one_storage_for_weights_of_several_shapes_ties_nothing() -> None:
    a, b = (1, F32, (3,), (1,), 0), (1, F32, (4,), (1,), 0)
    assert _ties(slots(a, a, b, value=None)) == {}
    first, again = same = slots(a, a, value=None)
    assert _ties(same) == {again.node: first.node}
    first, again, _ = held = slots(a, a, b, value=torch.ones(3))
    assert _ties(held) == {again.node: first.node}
