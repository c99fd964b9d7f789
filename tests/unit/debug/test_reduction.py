"""Reductions of modules with a planted failure to the smallest module that has it."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.debug.reduction import reduce_module
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.universe import make_context

PROGRAM = """
func.func private @helper(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %0 = aten.exp(%x) : (tensor<4x64xf32>) -> tensor<4x64xf32>
  func.return %0 : tensor<4x64xf32>
}
func.func @main(%x: tensor<4x64xf32>, %w: tensor<64x64xf32>) -> (tensor<4x64xf32>, tensor<4x64xf32>)
    attributes {note = "n"} {
  %0 = aten.mm(%x, %w) : (tensor<4x64xf32>, tensor<64x64xf32>) -> tensor<4x64xf32>
  %1 = aten.relu(%0) : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %2 = aten.softmax.int(%1) {dim = -1 : i64} : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %3 = aten.add.Tensor(%2, %0) : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %4 = aten.exp(%3) : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %5 = func.call @helper(%4) : (tensor<4x64xf32>) -> tensor<4x64xf32>
  func.return %5, %1 : tensor<4x64xf32>, tensor<4x64xf32>
}
"""


def names(module: ModuleOp) -> set[str]:
    return {op.name for op in module.walk()}


def test_one_op_remains() -> None:
    def fails(module: ModuleOp) -> bool:
        return "aten.softmax.int" in names(module)

    context = make_context()
    module = parse_module(PROGRAM, context)
    before = module_text(module)
    assert module_text(reduce_module(module, fails, context)) == (
        "builtin.module {\n"
        "  func.func @main(%x: tensor<1x1xf32>) {\n"
        "    %0 = aten.softmax.int(%x) {dim = -1 : i64} : (tensor<1x1xf32>) -> tensor<1x1xf32>\n"
        "    func.return\n"
        "  }\n"
        "}"
    )
    assert module_text(module) == before


def test_ops_that_only_fail_together_remain_together() -> None:
    def fails(module: ModuleOp) -> bool:
        pairs = [(op.name, value.owner) for op in module.walk() for value in op.operands]
        return any(name == "aten.add.Tensor" and getattr(owner, "name", "") == "aten.mm" for name, owner in pairs)

    context = make_context()
    small = reduce_module(parse_module(PROGRAM, context), fails, context)
    assert [op.name for op in small.walk()] == [
        "builtin.module",
        "func.func",
        "aten.mm",
        "aten.add.Tensor",
        "func.return",
    ]


def test_a_size_that_the_failure_needs_stays() -> None:
    def fails(module: ModuleOp) -> bool:
        return "aten.relu" in names(module) and "x64xf32" in module_text(module)

    context = make_context()
    text = module_text(reduce_module(parse_module(PROGRAM, context), fails, context))
    assert "tensor<1x64xf32>" in text
    assert "aten.mm" not in text


def test_every_tested_module_verifies_and_is_a_copy() -> None:
    def fails(module: ModuleOp) -> bool:
        module.verify()
        found = "aten.relu" in names(module)
        for op in list(module.ops):
            op.detach()
        return found

    context = make_context()
    small = reduce_module(parse_module(PROGRAM, context), fails, context)
    assert [op.name for op in small.walk()] == ["builtin.module", "func.func", "aten.relu", "func.return"]
