"""Notes on arguments."""

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.argument_notes import NAME, kind_of, new_values, note_of
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

T = "tensor<4xf32>"


def function(arguments: str) -> FuncOp:
    module = parse_module(f"func.func @main({arguments}) {{ func.return }}", make_context(), "main.mlir")
    return next(op for op in module.ops if isinstance(op, FuncOp))


def test_kinds_and_names() -> None:
    main = function(f'%x: {T} {{aten.name = "x", aten.kind = "input"}}, %y: {T}')
    assert (kind_of(main, 0), kind_of(main, 1)) == ("input", None)
    assert note_of(main, 0, NAME) == StringAttr("x")


def test_a_function_without_notes() -> None:
    assert kind_of(function(f"%x: {T}"), 0) is None


def test_new_values_of_arguments() -> None:
    text = f"""func.func @main(%x: {T} {{aten.name = "x"}}, %y: {T} {{aten.name = "y"}}, %z: {T})
        -> ({T} {{aten.name = "out"}}, {T} {{aten.mutates = "y"}}, {T} {{aten.mutates = "gone"}}) {{
        func.return %x, %x, %x : {T}, {T}, {T}
    }}"""
    main = next(op for op in parse_module(text, make_context(), "main.mlir").ops if isinstance(op, FuncOp))
    assert new_values(main) == {1: 1}
    assert new_values(function(f"%x: {T}")) == {}
