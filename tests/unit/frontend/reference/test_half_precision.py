"""Programs in half precision: which they are, and which of their ops are marked as not rounded."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp, UnitAttr

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.frontend.reference.half_precision import has_halves, keep_wide
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context


def cast_of(source: str, target: str) -> ModuleOp:
    """A program that casts its argument and takes the sine of that."""
    return parse_module(
        f"""func.func @main(%x: tensor<2x{source}>) -> tensor<2x{target}> {{
          %0 = aten._to_copy(%x) {{dtype = "{target}"}} : (tensor<2x{source}>) -> tensor<2x{target}>
          %1 = aten.sin(%0) : (tensor<2x{target}>) -> tensor<2x{target}>
          func.return %1 : tensor<2x{target}>
        }}""",
        make_context(),
    )


@pytest.mark.parametrize(
    ("source", "target", "halves"),
    [
        ("f32", "f16", True),
        ("f16", "f32", True),
        ("bf16", "f32", True),
        ("f32", "bf16", True),
        ("f32", "f64", False),
        ("i16", "f32", False),
    ],
)
def test_arguments_and_results_in_half_precision_count(source: str, target: str, halves: bool) -> None:
    assert has_halves(cast_of(source, target)) is halves


@pytest.mark.parametrize(
    ("source", "target", "marked"),
    [
        ("f16", "f32", ["_to_copy", "sin"]),
        ("f32", "f16", ["_to_copy"]),
        ("bf16", "f16", []),
        ("f64", "bf16", []),
    ],
)
def test_what_is_computed_in_float32_or_of_it_is_marked(source: str, target: str, marked: list[str]) -> None:
    module = cast_of(source, target)
    keep_wide(module)
    ops = [op for op in module.walk() if isinstance(op, AtenOp)]
    assert [op.overload for op in ops if op.is_wide] == marked
    assert all(op.wide == UnitAttr() for op in ops if op.overload in marked)
    assert not any("wide" in op.properties for op in module.walk() if not isinstance(op, AtenOp))
