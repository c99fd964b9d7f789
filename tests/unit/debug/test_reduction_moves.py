"""Single changes of a reduction, on modules that show each."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.debug.reduction_moves import (
    drop_attribute,
    drop_ops,
    drop_results,
    drop_unused_arguments,
    functions,
    removable,
    smaller_sizes,
)
from spyre_mlir.text.render import module_text, parse_module, verify_module
from spyre_mlir.universe import make_context

CHAIN = """
func.func private @declared(%x: tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32> {a.x}, %y: tensor<8xf32>) -> (tensor<4xf32> {a.r}, tensor<8xf32>) {
  %0 = aten.exp(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = aten.cat(%0, %0) {dim = 0} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<8xf32>
}
"""


@pytest.fixture
def chain() -> ModuleOp:
    return parse_module(CHAIN, make_context())


def lines(module: ModuleOp) -> list[str]:
    verify_module(module)
    return [line.strip() for line in module_text(module).splitlines()[1:-1]]


def test_removable_ops(chain: ModuleOp) -> None:
    assert [op.name for op in removable(chain)] == ["func.func", "func.func", "aten.exp", "aten.cat"]


def test_an_operand_replaces_a_result(chain: ModuleOp) -> None:
    assert drop_ops(chain, 2, 3, keep_operands=True)
    assert "%0 = aten.cat(%x, %x)" in lines(chain)[2]
    assert "func.return %x, %0" in lines(chain)[3]


def test_an_argument_replaces_a_result(chain: ModuleOp) -> None:
    # No operand of the second op has the type of its result.
    assert drop_ops(chain, 3, 4, keep_operands=True)
    assert lines(chain)[1].startswith("func.func @main(%x: tensor<4xf32> {a.x}, %y: tensor<8xf32>, %0: tensor<8xf32>)")
    assert drop_ops(chain, 2, 3, keep_operands=False)
    assert lines(chain)[2:] == ["func.return %1, %0 : tensor<4xf32>, tensor<8xf32>", "}"]


def test_ops_inside_of_a_dropped_op_go_with_it(chain: ModuleOp) -> None:
    assert drop_ops(chain, 1, 4, keep_operands=True)
    assert lines(chain) == ["func.func private @declared(tensor<4xf32>) -> tensor<4xf32>"]
    assert not drop_ops(chain, 1, 4, keep_operands=True)


def test_a_result_outside_of_functions_has_no_replacement() -> None:
    module = parse_module("%0 = arith.constant 1 : i32\n%1 = arith.extsi %0 : i32 to i64", make_context())
    assert not drop_ops(module, 0, 1, keep_operands=True)


def test_functions_with_a_body(chain: ModuleOp) -> None:
    assert [one.sym_name.data for one in functions(chain)] == ["main"]


def test_results_of_functions(chain: ModuleOp) -> None:
    assert not drop_results(chain, 0, 2, 3)
    assert drop_results(chain, 0, 0, 1)
    assert lines(chain)[1].endswith("-> tensor<8xf32> {") or "-> (tensor<8xf32>) {" in lines(chain)[1]
    assert "a.r" not in module_text(chain)
    assert drop_results(chain, 0, 0, 1)
    assert lines(chain)[-2] == "func.return"


def test_unused_arguments_of_functions(chain: ModuleOp) -> None:
    assert drop_unused_arguments(chain, 0)
    assert "@main(%x: tensor<4xf32> {a.x}) ->" in lines(chain)[1]
    assert not drop_unused_arguments(chain, 0)


def test_attributes() -> None:
    module = parse_module("func.func @f() attributes {a = 1 : i32} {\n func.return\n}", make_context())
    assert not drop_attribute(module, 1, "b")
    assert drop_attribute(module, 1, "a")
    assert lines(module)[0] == "func.func @f() {"


def test_sizes_are_smaller_in_types_or_everywhere() -> None:
    text = 'tensor<5x2xf32> {size = [5, 25], name = "%5 x5"}'
    assert list(smaller_sizes(text)) == [
        'tensor<1x2xf32> {size = [1, 25], name = "%5 x5"}',
        'tensor<1x2xf32> {size = [5, 25], name = "%5 x5"}',
        'tensor<2x2xf32> {size = [2, 25], name = "%5 x5"}',
        'tensor<2x2xf32> {size = [5, 25], name = "%5 x5"}',
        'tensor<3x2xf32> {size = [3, 25], name = "%5 x5"}',
        'tensor<3x2xf32> {size = [5, 25], name = "%5 x5"}',
        'tensor<5x1xf32> {size = [5, 25], name = "%5 x5"}',
        'tensor<5x1xf32> {size = [5, 25], name = "%5 x5"}',
    ]
