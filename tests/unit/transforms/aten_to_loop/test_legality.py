"""What has no lowering, and what has no elements, is refused before anything is lowered."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.transforms.aten_to_loop.legality import check_not_empty, check_supported
from tests.unit.transforms.levels import passed


def function(body: str, argument: str = "4xf32") -> FuncOp:
    text = f"func.func @main(%x: tensor<{argument}>) {{\n{body}\nfunc.return\n}}"
    return functions(passed(text))[0]


EXP = "aten.exp(%x) : (tensor<4xf32>) -> tensor<4xf32>"
COSH = 'aten.call "aten.cosh"(%x) {self = #aten.operands<1>} : (tensor<4xf32>) -> tensor<4xf32>'
THREE = function(f"%a = {EXP}\n%b = {COSH}\n%c = {EXP}\n%d = arith.constant 1 : index")


def is_exp(op: Operation) -> bool:
    return isinstance(op, AtenOp) and op.overload == "exp"


def test_what_is_lowered_is_passed_over() -> None:
    check_supported(THREE, lambda op: True)
    check_supported(function(f"%a = {EXP}"), is_exp)


def test_all_that_is_missing_is_listed_by_name_with_its_first_place() -> None:
    with pytest.raises(UnsupportedError) as refused:
        check_supported(THREE, lambda op: False)
    first, *lines = refused.value.message.splitlines()
    assert first == "3 operations lack a lowering (4 nodes):"
    assert [line.partition(", first at ")[0] for line in lines] == [
        "  arith.constant  x1",
        "  aten.cosh  x1",
        "  aten.exp  x2",
    ]
    assert [line.split(":")[-2] for line in lines] == ["5", "3", "2"]
    assert refused.value.hint == "run decompose-aten first, or declare them in the op table"
    with pytest.raises(UnsupportedError, match=r"2 operations lack a lowering \(2 nodes\)"):
        check_supported(THREE, is_exp)


def test_ops_of_later_levels_are_not_sent_back() -> None:
    with pytest.raises(UnsupportedError) as refused:
        check_supported(function("%a = spyre.loop.empty : tensor<4xf32>"), lambda op: False)
    assert refused.value.hint == "these are ops behind this pass: --to goes on from where a program is"


EMPTY = {
    "an operand": ("0xf32", "aten.exp(%x) : (tensor<0xf32>) -> tensor<0xf32>", "tensor<0xf32>"),
    "a sum of nothing": (
        "0x4xf32",
        "aten.sum.dim_IntList(%x) {dim = array<i64: 0>, keepdim = false} : (tensor<0x4xf32>) -> tensor<4xf32>",
        "tensor<0x4xf32>",
    ),
    "a result of cat": (
        "0xf32",
        "aten.cat(%x, %x) {dim = 0 : i64} : (tensor<0xf32>, tensor<0xf32>) -> tensor<0xf32>",
        "tensor<0xf32>",
    ),
    "a view of nothing": ("0x2xf32", "aten.t(%x) : (tensor<0x2xf32>) -> tensor<2x0xf32>", "tensor<0x2xf32>"),
}


@pytest.mark.parametrize("name", EMPTY)
def test_computing_on_no_elements_is_refused(name: str) -> None:
    argument, op, kind = EMPTY[name]
    with pytest.raises(UnsupportedError) as refused:
        check_not_empty(function(f"%a = {op}", argument))
    assert refused.value.message == f"a tensor without elements, {kind}"
    assert str(refused.value.where).startswith("aten.") and str(refused.value.where).endswith(":2:1")
    assert refused.value.hint == "leave the op out"


PART = "%a = aten.slice.Tensor(%x) {dim = 0 : i64, start = 4 : i64} : (tensor<4xf32>) -> tensor<0xf32>\n"


@pytest.mark.parametrize(
    "body",
    [
        PART,
        PART + "%b = aten.cat(%x, %a) {dim = 0 : i64} : (tensor<4xf32>, tensor<0xf32>) -> tensor<4xf32>",
        PART + '%b = aten.exp(%a) host because "no" : (tensor<0xf32>) -> tensor<0xf32>',
        "%a = aten.full() {size = array<i64: 0>, fill_value = 1.0 : f64} : () -> tensor<0xf32>",
        f"%a = {EXP}\n%b = arith.constant 0 : index",
    ],
)
def test_parts_and_host_steps_may_be_empty(body: str) -> None:
    check_not_empty(function(body))


def test_a_result_may_be_empty() -> None:
    text = "func.func @main(%x: tensor<0xf32>) -> tensor<0xf32> { func.return %x : tensor<0xf32> }"
    check_not_empty(functions(passed(text))[0])


def test_all_numbered_ops_are_refused_at_once_each_number_once() -> None:
    op = "aten.exp(%x) attributes {{spyre.origin = {} : i64}} : (tensor<0xf32>) -> tensor<0xf32>"
    body = "\n".join(f"%{n} = {op.format(number)}" for n, number in enumerate((4, 4, 7)))
    with pytest.raises(UnsupportedError) as refused:
        check_not_empty(function(body, "0xf32"))
    assert [e.origin for e in (refused.value, *refused.value.others)] == [4, 7]
