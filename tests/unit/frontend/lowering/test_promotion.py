"""Promotion of element types, against `torch.result_type` and what an integer type holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch.fx import Graph, Node

from spyre_mlir.frontend import import_program
from spyre_mlir.frontend.arguments import BoundArgument, NotInTableError, bind, named_as_in, overload_name
from spyre_mlir.frontend.lowering.promotion import computes_in, held, in_float32, operand_dtype, without_result_dtype
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import OpEntry
from spyre_mlir.text.render import module_text
from tests.functions import FunctionModel
from tests.unit.frontend.graphs import calls, traced

F32, I64 = torch.ones(3), torch.ones(3, dtype=torch.int64)
aten = torch.ops.aten


def entry(name: str) -> OpEntry:
    found = ATEN.find(name)
    assert found is not None
    return found


def promoted(function: Callable[..., Any], *examples: torch.Tensor) -> torch.dtype | None:
    """The type that the operands of the last operator of a function get."""
    node: Any = calls(traced(function, *examples))[-1]
    known = entry(overload_name(node.target))
    return operand_dtype(known, node, named_as_in(known, bind(node)))


@pytest.mark.parametrize(
    ("function", "examples", "dtype"),
    [
        (lambda a, b: a * b, (F32, I64), torch.float32),
        (lambda a, b: a / b, (I64, I64), torch.float32),
        (lambda a: a.sum(0), (I64.bool(),), torch.int64),
        (lambda a: a.view(3, 1), (F32,), None),
        (lambda a: aten.full([2], 3, dtype=torch.int64), (F32,), None),
        (lambda a: aten._to_copy(a, dtype=torch.float16), (F32,), None),
        (lambda a, b: torch.cat([a, b]), (F32, I64), torch.float32),
        (lambda a: a.flip(0), (F32,), None),
        (lambda a, b: a > b, (I64, F32), torch.float32),
        (lambda a: a > 2.5, (I64,), torch.float32),
        (lambda a: a > 2, (I64.int(),), torch.int32),
        (lambda a, b: a == b, (I64.to(torch.int8), I64.to(torch.uint8)), torch.int16),
        (lambda c, a, b: torch.where(c, a, b), (F32 > 0, F32.half(), F32), torch.float32),
    ],
)
def test_operands_get_the_type_that_torch_computes_in(
    function: Callable[..., Any], examples: tuple[torch.Tensor, ...], dtype: torch.dtype | None
) -> None:
    assert promoted(function, *examples) is dtype


@pytest.mark.parametrize(
    ("function", "numbers", "operand"),
    [
        (lambda a, n: a > n, I64.int(), "%args: tensor<?xi32"),
        (lambda a, n: a > n / 2, I64.int(), "_to_copy(%args) {dtype = f32}"),  # as torch.result_type(a, 1.5)
        (lambda a, n: a != n, F32.half(), "%args: tensor<?xf16"),
    ],
)
def test_a_size_that_is_a_symbol_counts_as_a_number_of_its_kind(
    function: Callable[..., Any], numbers: torch.Tensor, operand: str
) -> None:
    model, rows = FunctionModel(lambda x: function(x, x.shape[0])), torch.export.Dim("rows", min=2)
    text = module_text(import_program(torch.export.export(model, (numbers,), dynamic_shapes=(({0: rows},),))).module)
    assert operand in text
    assert text.count("_to_copy") == operand.count("_to_copy")


def test_of_several_results_the_first_counts() -> None:
    (node, *_) = calls(traced(lambda a: aten.log_sigmoid_forward(a), F32.half()))
    assert operand_dtype(entry("log_sigmoid_forward"), node, bind(node)) is torch.float16


def valued(value: torch.Tensor) -> Node:
    node = Graph().placeholder("x")
    node.meta["val"] = value
    return node


@pytest.mark.parametrize(
    ("name", "operands", "dtype"),
    [
        ("neg", {"self": F32.half()}, torch.float16),
        ("addcmul", {"self": I64, "tensor1": I64.int(), "tensor2": F32.half()}, torch.float16),
        ("addcmul", {"self": I64.int(), "tensor1": I64, "tensor2": I64.bool()}, torch.int64),
        ("where.self", {"condition": I64.bool(), "self": I64.int(), "other": I64.to(torch.int8)}, torch.int32),
    ],
)
def test_truth_values_come_of_operands_of_one_type(
    name: str, operands: dict[str, torch.Tensor], dtype: torch.dtype
) -> None:
    predicate = replace(entry(name), boolean=True)
    bound = {key: BoundArgument(valued(value), False) for key, value in operands.items()}
    assert operand_dtype(predicate, valued(I64.bool()), bound) is dtype


def test_a_predicate_that_gives_integers_is_not_that_of_the_table() -> None:
    predicate = replace(entry("neg"), boolean=True)
    with pytest.raises(NotInTableError, match=r"^integers$"):
        operand_dtype(predicate, valued(I64), {"self": BoundArgument(valued(I64), False)})


@pytest.mark.parametrize(
    ("value", "dtype", "kept"),
    [
        (300, torch.uint8, 44),
        (-1, torch.uint8, 255),
        (128, torch.int8, -128),
        (127, torch.int8, 127),
        (-129, torch.int8, 127),
        (2**31, torch.int32, -(2**31)),
        (5, torch.int64, 5),
        (300, torch.float16, 300),
        (3, torch.bool, 3),
        (float("-inf"), torch.bool, True),
        (0.0, torch.bool, False),
        (300, None, 300),
        (True, torch.uint8, True),
        (2.5, torch.uint8, 2.5),
    ],
)
def test_a_number_wraps_as_an_integer_type_holds_it(value: object, dtype: torch.dtype | None, kept: object) -> None:
    found = held(value, dtype)
    assert (found, type(found)) == (kept, type(kept))


@pytest.mark.parametrize(
    ("value", "dtype", "rounded"),
    [
        (0.1, torch.float32, float(np.float32(0.1))),
        (0.1, torch.float64, 0.1),
        (0.1, None, 0.1),
        (2**24 + 1, torch.float32, 2**24),
        (1e300, torch.float32, 1e300),
        (float("-inf"), torch.float32, float("-inf")),
        (True, torch.float32, True),
        ("none", torch.float32, "none"),
    ],
)
def test_a_number_is_rounded_once_where_float32_computes(
    value: object, dtype: torch.dtype | None, rounded: object
) -> None:
    found = in_float32(value, dtype)
    assert (found, type(found)) == (rounded, type(value))


def test_numbers_are_of_the_type_of_the_operands_or_else_of_the_result() -> None:
    product, filled, several = calls(
        traced(lambda a: (a * 2, aten.full([2], 3, dtype=torch.int64), a.max(0).values), F32.half())
    )[:3]
    assert computes_in(entry("mul.Tensor"), product, torch.float32) is torch.float32
    assert computes_in(entry("mul.Tensor"), product, None) is torch.float16
    assert computes_in(entry("full"), filled, None) is None, "it says its type itself"
    assert computes_in(entry("max.dim"), several, None) is None


def test_arguments_that_ask_for_a_type_are_as_good_as_unsaid() -> None:
    bound = {
        "dim": BoundArgument(1, False),
        "dtype": BoundArgument(torch.float32, False),
        "half_to_float": BoundArgument(True, False),
    }
    assert without_result_dtype(bound) == {
        "dim": BoundArgument(1, False),
        "dtype": BoundArgument(None, True),
        "half_to_float": BoundArgument(False, True),
    }
