"""Calls become the ops of their functions."""

import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.errors import LoweringError
from spyre_mlir.text.render import module_text, verify_module
from spyre_mlir.transforms.regions.inlining import inline_all
from spyre_mlir.transforms.regions.outlining import outline
from tests.unit.transforms.regions.programs import T, calls, functions, parsed, stacked


def text(module: ModuleOp) -> str:
    """With places, without the names that the program gave to its values."""
    for result in (result for op in module.walk() for result in op.results):
        result.name_hint = None
    return module_text(module, locations=True)


def test_inlining_undoes_outlining_places_included() -> None:
    module = stacked(4)
    before = text(module)
    outline(module, functions(module)["main"])
    assert calls(module)
    inline_all(module)
    verify_module(module)
    assert text(module) == before


def test_calls_of_calls() -> None:
    module = parsed(f"""
func.func @main(%x: {T}) -> {T} {{
  %0 = func.call @outer(%x) : ({T}) -> {T}
  func.return %0 : {T}
}}
func.func private @outer(%x: {T}) -> {T} {{
  %0 = func.call @inner(%x) : ({T}) -> {T}
  %1 = func.call @inner(%0) : ({T}) -> {T}
  func.return %1 : {T}
}}
func.func private @inner(%x: {T}) -> {T} {{
  %0 = aten.neg(%x) : ({T}) -> {T}
  func.return %0 : {T}
}}""")
    inline_all(module)
    verify_module(module)
    assert [op.name for op in functions(module)["main"].body.block.ops] == ["aten.neg", "aten.neg", "func.return"]
    assert list(functions(module)) == ["main"]


def test_a_public_function_stays() -> None:
    module = parsed(f"""
func.func @main(%x: {T}) -> {T} {{
  %0 = func.call @public(%x) : ({T}) -> {T}
  func.return %0 : {T}
}}
func.func @public(%x: {T}) -> {T} {{
  func.return %x : {T}
}}""")
    inline_all(module)
    assert list(functions(module)) == ["main", "public"]


def test_a_circle_is_refused() -> None:
    module = parsed(f"""
func.func @main(%x: {T}) -> {T} {{
  %0 = func.call @again(%x) : ({T}) -> {T}
  func.return %0 : {T}
}}
func.func private @again(%x: {T}) -> {T} {{
  %0 = func.call @again(%x) : ({T}) -> {T}
  func.return %0 : {T}
}}""")
    with pytest.raises(LoweringError, match="@again calls itself"):
        inline_all(module)
