"""From nodes to ops: casts, constants, numbers, masks and what is dropped, read off small imported functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from xdsl.dialects.builtin import FileLineColLoc, TensorType, f16, f32, i64
from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.aten import AtenOp, CallOp
from spyre_mlir.dialects.aten_arguments import said_arguments
from spyre_mlir.frontend.importer import import_program
from spyre_mlir.frontend.program.program import Argument, Program
from spyre_mlir.plugins import registry
from tests.functions import FunctionModel

X, WHOLE = torch.arange(6.0).reshape(2, 3), torch.tensor([[1, 2, 3], [4, 5, 6]])
BESSEL = torch.special.bessel_j0


def imported(function: Callable[..., Any], *args: torch.Tensor) -> Program:
    return import_program(FunctionModel(function), args)


def ops_of(program: Program) -> list[AtenOp]:
    program.module.verify()
    return [op for op in program.module.walk() if isinstance(op, AtenOp)]


def ops(function: Callable[..., Any], *args: torch.Tensor) -> list[AtenOp]:
    return ops_of(imported(function, *args))


def names(function: Callable[..., Any], *args: torch.Tensor) -> list[str]:
    return [op.overload for op in ops(function, *args)]


class Chain(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x).exp()


def test_values_are_named_as_the_nodes_and_placed_in_the_model() -> None:
    first, second = ops_of(import_program(Chain(), (X,)))
    assert (first.results[0].name_hint, second.results[0].name_hint) == ("relu", "exp")
    assert first.operands[0].name_hint == "x"
    assert isinstance(first.location, FileLineColLoc)
    line = Chain.forward.__code__.co_firstlineno + 1
    assert (first.location.filename.data, first.location.line.data) == (__file__, line)


def test_no_op_outside_the_program_reads_a_value() -> None:
    """What is made to infer a type, or refused, is gone: regions would return what it seems to read."""
    program = imported(lambda x: torch.cat(x.chunk(3, 1)[::-1], 1).clamp(max=2).std(), X)
    (block,) = (op.body.block for op in program.module.walk() if isinstance(op, FuncOp))
    values = [*block.args, *(result for op in block.ops for result in op.results)]
    assert all(use.operation.parent is block for value in values for use in value.uses)


def test_parts_of_several_results_are_found_by_number() -> None:
    program = imported(lambda x: x.max(1)[1] + x.sort(1)[1][:, 0], X)
    maximum, sort, *_ = ops_of(program)
    assert [str(r.type) for r in maximum.results] == ["tensor<2xf32>", "tensor<2xi64>"]
    assert not maximum.results[0].uses and maximum.results[1].uses
    assert not sort.results[0].uses and sort.results[1].uses


def test_parts_of_a_split_are_ops_of_their_own() -> None:
    first, second, total = ops(lambda x: (lambda a, b: a - b)(*x.split([1, 1])), X)
    assert [op.arguments()["end"] for op in (first, second)] == [1, 2]
    assert list(total.operands) == [first.results[0], second.results[0]]
    assert first.results[0].name_hint == "split_with_sizes"


def test_one_cast_serves_all_its_users_and_constants_need_none() -> None:
    cast, product, total = ops(lambda x, i: x * i + i, X, WHOLE)
    assert (cast.overload, said_arguments(cast.given)["dtype"]) == ("_to_copy", f32)
    assert product.operands[1] is total.operands[1] is cast.results[0]
    assert cast.results[0].type == TensorType(f32, [2, 3])
    program = imported(lambda x: x * torch.tensor([1, 2, 3]), X)
    assert [op.overload for op in ops_of(program)] == ["mul.Tensor"]
    assert program.arguments[1] == Argument("constant_0", "constant", (3,), torch.float32)
    assert program.values["constant_0"].tolist() == [1, 2, 3]


def test_what_has_the_type_already_is_not_cast() -> None:
    assert names(lambda x: x * x, X) == ["mul.Tensor"]
    assert names(lambda x, m: torch.where(m, x, x), X, X > 1) == ["where.self"], "a condition stays as it is"


def test_equal_constants_are_one_argument() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor([1.0, 2, 3]) - x * torch.tensor([1.0, 2, 3]) + torch.tensor([3.0, 2, 1])

    program = imported(function, X)
    assert [(a.name, a.kind) for a in program.arguments[1:]] == [("constant_0", "constant"), ("constant_1", "constant")]
    assert program.values["constant_1"].tolist() == [3, 2, 1]


def test_constants_that_are_repeated_are_kept_once() -> None:
    program = imported(lambda x: x + torch.tensor([[1.0], [2.0]]).expand(2, 3), X)
    expand, total = ops_of(program)
    assert (expand.overload, expand.arguments()["size"]) == ("expand", (2, 3))
    assert total.operands[1] is expand.results[0]
    assert program.arguments[1].shape == (2, 1)
    assert program.values["constant_0"].tolist() == [[1], [2]]


class Taken(nn.Module):
    """Holds its weight by the name of a constant."""

    def __init__(self) -> None:
        super().__init__()
        self.constant_0 = nn.Parameter(torch.ones(3))
        self.unused = nn.Parameter(torch.ones(3))
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("spare", torch.zeros(1))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        return x * self.constant_0 + torch.tensor([1.0, 2, 3])


def test_constants_take_free_names_and_unused_weights_go() -> None:
    program = import_program(Taken(), (X, X + 1))
    assert [a.name for a in program.arguments] == ["x", "y", "constant_0", "count", "constant_1"]
    assert set(program.values) == {"constant_0", "count", "constant_1"}


class Replaced(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.copy_(x)
        return x + 1


def test_a_buffer_that_is_only_written_stays_an_argument() -> None:
    program = import_program(Replaced(), (X,))
    assert [a.name for a in program.arguments] == ["x", "count"]
    assert [op.overload for op in ops_of(program)] == ["add.Tensor"]


def test_a_number_stands_for_a_known_tensor_of_equal_elements() -> None:
    (op,) = ops(lambda x: x + torch.full((2, 3), 2.5), X)
    assert (op.arguments()["other"], len(op.operands)) == (2.5, 1)
    (op,) = ops(lambda x: x + torch.tensor(2.5), X)
    assert op.arguments()["other"] == 2.5
    (op,) = ops(lambda i: i + torch.tensor(3), WHOLE)
    assert op.arguments()["other"] == 3


@pytest.mark.parametrize(
    ("function", "last"),
    [
        (lambda x: x[0] + torch.ones(2, 3), "add.Tensor"),
        (lambda x: x + torch.tensor([1.0, 1.0, 2.0]), "add.Tensor"),
        (lambda x: x @ torch.ones(3, 3), "mm"),
    ],
)
def test_other_known_tensors_are_arguments(function: Callable[..., Any], last: str) -> None:
    found = ops(function, X)
    assert found[-1].overload in (last, "matmul")
    assert len(found[-1].operands) == 2


def test_a_condition_gives_no_shape_to_a_result() -> None:
    """Both choices are known, so one of them has to say the shape."""
    program = imported(lambda m: torch.where(m, torch.ones(2, 3), torch.tensor([[1.0], [2.0]])), X > 1)
    assert len(ops_of(program)[-1].operands) == 3


def test_numbers_are_rounded_and_wrapped_as_eager_has_them() -> None:
    (op,) = ops(lambda x: x * 0.1, X)
    assert op.arguments()["other"] == float(torch.tensor(0.1, dtype=torch.float32))
    (op,) = ops(lambda x: x * 0.1, X.double())
    assert op.arguments()["other"] == 0.1
    (op,) = ops(lambda i: i + 300, WHOLE.to(torch.uint8))
    assert op.arguments()["other"] == 44


def test_what_the_table_cannot_say_is_a_call() -> None:
    (op,) = ops(BESSEL, X)
    assert isinstance(op, CallOp)
    assert (op.overload, list(op.operands)) == ("special_bessel_j0", [op.operands[0]])
    assert op.results[0].type == TensorType(f32, [2, 3])
    program = imported(lambda x: torch.sort(x, dim=0, descending=True)[0], X)
    assert ops_of(program)[0].arguments()["descending"] is True


def test_operators_of_another_namespace_keep_it() -> None:
    program = imported(lambda x: torch.ops.spyre.topkvalue(x, 2), X)
    assert [op.overload for op in ops_of(program)] == ["spyre::topkvalue"]


def test_a_softmax_in_another_type_is_a_cast_before_it() -> None:
    cast, softmax = ops(lambda x: torch.softmax(x, -1, dtype=torch.float32), X.half())
    assert (said_arguments(cast.given)["dtype"], "dtype" in said_arguments(softmax.given)) == (f32, False)
    assert cast.operands[0].type == TensorType(f16, [2, 3])


Q = torch.ones(1, 1, 4, 8)
LOWER = torch.ones(4, 4, dtype=torch.bool).tril()


@pytest.mark.parametrize(
    ("mask", "said", "operands"),
    [
        (LOWER, {"is_causal"}, 3),
        (torch.ones(4, 4, dtype=torch.bool), set(), 3),
        (LOWER.t().contiguous(), set(), 4),
        (torch.zeros(4, 4), set(), 4),
    ],
)
def test_attention_says_that_it_is_causal_instead_of_carrying_the_mask(
    mask: torch.Tensor, said: set[str], operands: int
) -> None:
    found = ops(lambda q: F.scaled_dot_product_attention(q, q, q, mask.clone()), Q)
    assert (set(said_arguments(found[-1].given)) & {"is_causal"}, len(found[-1].operands)) == (said, operands)


def test_a_mask_of_several_layers_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[torch.Tensor] = []
    monkeypatch.setattr("spyre_mlir.frontend.lowering.nodes.is_causal_mask", lambda mask: not looked.append(mask))
    mask = LOWER.clone()

    def layers(q: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            q = F.scaled_dot_product_attention(q, q, q, mask)
        return q

    found = ops(layers, Q)
    assert len(looked) == 1
    assert [len(op.operands) for op in found] == [3, 3, 3]


def test_a_mask_that_a_call_gives_is_carried() -> None:
    (op,) = ops(lambda q, m: F.scaled_dot_product_attention(q, q, q, m), Q, LOWER)
    assert len(op.operands) == 4


def test_a_conversion_of_a_plugin_goes_first() -> None:
    with registry.isolated():
        registry.register_op("relu")(lambda node, build: [build.call("neg", node.args[0])])
        registry.register_op("max.dim")(
            lambda node, build: [
                build.call("amax", node.args[0], dim=(1,)),
                build.cast(build.call("amin", node.args[0], dim=(1,)), "i64"),
            ]
        )
        (op,) = ops(torch.relu, X)
        assert (op.overload, op.results[0].name_hint) == ("neg", "relu")
        found = ops(lambda x: x.max(1)[1] + 1, X)
    assert [op.overload for op in found] == ["amin", "_to_copy", "add.Tensor"], "nobody reads the largest"
    assert found[1].results[0].type == TensorType(i64, [2])


def test_what_leads_to_no_elements_is_dropped() -> None:
    assert names(lambda x: torch.cat([x.exp()[:0], x]), X) == ["cat"]
