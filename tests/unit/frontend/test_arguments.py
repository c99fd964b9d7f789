"""Arguments of ops survive the import: keywords, defaults, None, numbers in a tensor's place, lists, casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from xdsl.dialects.builtin import f16, f32

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import said_arguments
from spyre_mlir.frontend import Program, import_program
from tests.end_to_end.importing.evaluate import evaluate
from tests.functions import FunctionModel


def imported(function: Callable[..., Any], *args: torch.Tensor) -> Program:
    program = import_program(FunctionModel(function), args)
    program.module.verify()
    return program


def ops(program: Program) -> list[AtenOp]:
    return [op for op in program.module.walk() if isinstance(op, AtenOp)]


def texts(program: Program) -> list[str]:
    return [str(op) for op in ops(program)]


X, Y = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3)


def test_keyword_argument_is_kept() -> None:
    assert "{alpha = 2 : i64}" in texts(imported(lambda x, y: torch.add(x, y, alpha=2), X, Y))[0]


def test_default_is_dropped() -> None:
    assert texts(imported(lambda x, y: torch.add(x, y, alpha=1), X, Y)) == [
        "%add = aten.add.Tensor(%args, %args_1) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>"
    ]


def test_attention_keeps_scale_and_says_the_mask_is_absent_only_if_needed() -> None:
    q = torch.randn(1, 2, 4, 8)
    (op,) = ops(imported(lambda q: F.scaled_dot_product_attention(q, q, q, scale=0.5), q))
    assert said_arguments(op.given).keys() == {"scale"}
    assert "5.000000e-01" in str(op)


def test_absent_tensor_before_a_present_one_is_said() -> None:
    (op,) = ops(imported(lambda x, b: torch.layer_norm(x, (3,), None, b), X, torch.ones(3)))
    assert "weight = #aten.none" in str(op)
    assert op.arguments()["weight"] is None
    assert op.arguments()["bias"] is op.operands[1]


def test_number_in_a_tensors_place_is_an_attribute_on_either_side() -> None:
    assert "{other = 2.5" in str(ops(imported(lambda x: x * 2.5, X))[0])
    (op,) = ops(imported(lambda x: 1 - x, X))
    assert op.overload == "rsub.Scalar"  # kept whole, as torch says it


def test_zero_dimensional_constant_is_a_number() -> None:
    program = imported(lambda x: x * torch.tensor(3.0), X)
    assert "{other = 3.000000e+00 : f64}" in texts(program)[0]
    assert [a.kind for a in program.arguments] == ["input"]


def test_constant_of_equal_elements_is_a_number_if_the_shape_stays() -> None:
    assert len(imported(lambda x: x + torch.ones(2, 3), X).arguments) == 1
    assert len(imported(lambda x: x + torch.ones(4, 2, 3), X).arguments) == 2  # the result is larger than x


def test_infinity_is_a_number() -> None:
    program = imported(lambda x, m: torch.where(m, x, torch.tensor(float("-inf"))), X, X > 2)
    (op,) = ops(program)
    assert op.overload == "where.self"
    assert op.arguments()["other"] == float("-inf")
    assert np.array_equal(evaluate(program, (X, X > 2))[0], np.where(X > 2, X, -np.inf))


def test_slice_to_the_end_and_negative_dimensions() -> None:
    program = imported(lambda x: x[:, 1:].sum(-1), X)
    assert np.array_equal(evaluate(program, (X,))[0], [3.0, 9.0])


def test_list_of_tensors() -> None:
    program = imported(lambda x, y: torch.cat([x, y, x], 1), X, Y)
    (op,) = ops(program)
    assert len(op.operands) == 3
    assert "dim = 1" in str(op)
    assert evaluate(program, (X, Y))[0].tolist() == [[0, 1, 2, 1, 1, 1, 0, 1, 2], [3, 4, 5, 1, 1, 1, 3, 4, 5]]


def test_list_with_holes() -> None:
    (op,) = ops(imported(lambda x, i: x[None][:, i, i], X, torch.tensor([1, 0])))[1:]
    assert op.name == "aten.index.Tensor"
    assert op.arguments() == {"self": op.operands[0], "indices": [None, op.operands[1], op.operands[1]]}


def test_one_index_tensor_has_holes_before_it() -> None:
    (op,) = ops(imported(lambda x, i: x[:, i], X, torch.tensor([2, 0])))
    assert op.name == "aten.index.Tensor"
    assert op.arguments() == {"self": op.operands[0], "indices": [None, op.operands[1]]}


def test_known_ranges_as_indices_are_a_view() -> None:
    found = ops(imported(lambda x: x[torch.arange(2)[:, None, None], torch.arange(1, 3)], X))
    assert "call" not in {op.overload for op in found}
    assert {op.overload for op in found} <= {"slice.Tensor", "permute", "unsqueeze", "expand", "squeeze.dims"}


def test_parts_of_a_split_are_slices() -> None:
    first, second = ops(imported(lambda x: torch.split(x, [1, 2], 1), X))
    assert [op.overload for op in (first, second)] == ["slice.Tensor", "slice.Tensor"]
    assert (second.arguments()["start"], second.arguments()["end"]) == (1, 3)


def test_stacked_list_of_one_stays_a_list() -> None:
    (op,) = ops(imported(lambda x: torch.stack([x], 1), X))
    assert op.arguments() == {"tensors": [op.operands[0]], "dim": 1}


def test_dtype_is_an_element_type_and_device_is_dropped() -> None:
    (op,) = ops(imported(lambda x: x.to("cpu", torch.float16), X))
    assert said_arguments(op.given)["dtype"] == f16
    assert "device" not in str(op)


def test_cast_to_the_same_type_vanishes() -> None:
    program = imported(lambda x: x.to(torch.float32, copy=True) + 1, X)
    assert [op.overload for op in ops(program)] == ["add.Tensor"]


def test_memory_format_is_a_string() -> None:
    (_, clone, _) = ops(imported(lambda x: x.t().contiguous().view(6), X))
    assert 'memory_format = "contiguous_format"' in str(clone)


def test_promotion_is_an_explicit_cast() -> None:
    whole = torch.tensor([[1, 2, 3], [4, 5, 6]])
    program = imported(lambda x, i: x * i, X, whole)
    cast, product = ops(program)
    assert said_arguments(cast.given)["dtype"] == f32
    assert product.operands[1] is cast.outputs[0]
    assert np.array_equal(evaluate(program, (X, whole))[0], (X * whole).numpy())


def test_comparison_is_made_in_the_promoted_type() -> None:
    whole = torch.tensor([[1, 2, 3], [4, 5, 6]])
    program = imported(lambda i: i > 2.5, whole)
    cast, compare = ops(program)
    assert said_arguments(cast.given)["dtype"] == f32
    assert str(compare.outputs[0].type) == "tensor<2x3xi1>"
    assert np.array_equal(evaluate(program, (whole,))[0], (whole > 2.5).numpy())


def test_sum_of_truth_values_counts_in_integers() -> None:
    program = imported(lambda x: (x > 1).sum(1), X)
    assert str(ops(program)[-1].outputs[0].type) == "tensor<2xi64>"
    assert evaluate(program, (X,))[0].tolist() == [1, 3]


def test_softmax_in_another_type_is_a_cast_and_a_softmax() -> None:
    program = imported(lambda x: torch.softmax(x, -1, dtype=torch.float32), X.half())
    cast, softmax = ops(program)
    assert said_arguments(cast.given)["dtype"] == f32
    assert "dtype" not in said_arguments(softmax.given)


def test_one_cast_serves_all_its_users() -> None:
    program = imported(lambda x, i: (x * i) + i, X, torch.ones(2, 3, dtype=torch.int64))
    assert [op.overload for op in ops(program)] == ["_to_copy", "mul.Tensor", "add.Tensor"]


def test_results_of_one_op_are_results_of_one_op() -> None:
    program = imported(lambda x: x.topk(2), X)
    (op,) = ops(program)
    assert op.overload == "topk"
    assert [str(r.type) for r in op.outputs] == ["tensor<2x2xf32>", "tensor<2x2xi64>"]
    assert op.arguments() == {"self": op.operands[0], "k": 2, "dim": -1, "largest": True, "sorted": True}
    assert program.results == ("output.0", "output.1")


def test_bitwise_operations_of_integers_and_of_truth_values_are_one_op() -> None:
    truths = (torch.tensor([True, True]), torch.tensor([True, False]))
    for inputs in ((torch.tensor([6, 5]), torch.tensor([3, 8])), truths):
        program = imported(lambda a, b: a & b, *inputs)
        assert [op.name for op in ops(program)] == ["aten.bitwise_and.Tensor"]
    assert evaluate(program, truths)[0].tolist() == [True, False]


@pytest.mark.parametrize(
    ("dtype", "text"),
    [
        (torch.bool, "i1"),
        (torch.int64, "i64"),
        (torch.uint8, "ui8"),
        (torch.float16, "f16"),
        (torch.bfloat16, "bf16"),
        (torch.float64, "f64"),
        (torch.float8_e4m3fn, "f8E4M3FN"),
    ],
)
def test_element_types(dtype: torch.dtype, text: str) -> None:
    program = imported(lambda x: x.reshape(3, 2), torch.zeros(2, 3).to(dtype))
    assert str(ops(program)[0].outputs[0].type) == f"tensor<3x2x{text}>"


def test_attention_with_a_causal_mask_says_so() -> None:
    q = torch.randn(1, 2, 4, 8)
    program = imported(lambda q: F.scaled_dot_product_attention(q, q, q, torch.ones(4, 4).tril().bool()), q)
    assert len(program.arguments) == 1
    assert ops(program)[0].arguments()["is_causal"] is True
    np.testing.assert_allclose(
        evaluate(program, (q,))[0], F.scaled_dot_product_attention(q, q, q, is_causal=True), atol=1e-6
    )


def test_attention_with_another_mask_keeps_it() -> None:
    q = torch.randn(1, 2, 4, 8)
    mask = torch.ones(4, 4).tril(1).bool()
    program = imported(lambda q: F.scaled_dot_product_attention(q, q, q, torch.ones(4, 4).tril(1).bool()), q)
    assert [a.kind for a in program.arguments] == ["input", "constant"]
    np.testing.assert_allclose(evaluate(program, (q,))[0], F.scaled_dot_product_attention(q, q, q, mask), atol=1e-6)


def test_vector_products_import_though_the_table_takes_matrices() -> None:
    program = imported(lambda x, v: x @ v, X, torch.ones(3))
    assert ops(program)[0].overload == "matmul"
    assert str(ops(program)[0].outputs[0].type) == "tensor<2xf32>"


def test_products_have_their_entry_whatever_they_call_their_operands() -> None:
    program = imported(lambda x, y: torch.mm(x, y), X, Y.t())
    assert ops(program)[0].name == "aten.mm"
    assert evaluate(program, (X, Y.t()))[0].tolist() == [[3.0, 3.0], [12.0, 12.0]]
