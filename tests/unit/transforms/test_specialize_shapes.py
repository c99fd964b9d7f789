"""Pass `specialize-shapes`."""

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.arg_spec import parse_pipeline

from spyre_mlir.dialects.aten_sizes import SymbolRange
from spyre_mlir.errors import InputError, LoweringError
from spyre_mlir.text.render import module_text, parse_module, verify_module
from spyre_mlir.transforms.specialize_shapes import SpecializeShapesPass, check_sizes
from spyre_mlir.universe import make_context

OPEN = """
builtin.module attributes {aten.input_leaves = ["x", {value = #aten.size<"s1">}]} {
  func.func @main(%x: tensor<?x6xf32, #aten.extents<"s0">> {aten.name = "x"})
      -> tensor<?x3xf32, #aten.extents<"2 * s0">>
      attributes {aten.symbols = {s0 = array<i64: 2, 9>, s1 = array<i64: 0>}} {
    aten.guard "s0 % 2 == 0" loc("model.py":7:0)
    %scaled = aten.mul.Tensor(%x) {other = #aten.size<"s1">}
      : (tensor<?x6xf32, #aten.extents<"s0">>) -> tensor<?x6xf32, #aten.extents<"s0">>
    %1 = aten.view(%scaled) {size = [#aten.size<"2 * s0">, 3 : i64]}
      : (tensor<?x6xf32, #aten.extents<"s0">>) -> tensor<?x3xf32, #aten.extents<"2 * s0">>
    func.return %1 : tensor<?x3xf32, #aten.extents<"2 * s0">>
  }
}
"""
CLOSED = """
builtin.module attributes {aten.input_leaves = ["x", {value = 5 : i64}]} {
  func.func @main(%x: tensor<4x6xf32> {aten.name = "x"}) -> tensor<8x3xf32> {
    %scaled = aten.mul.Tensor(%x) {other = 5 : i64} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    %1 = aten.view(%scaled) {size = array<i64: 8, 3>} : (tensor<4x6xf32>) -> tensor<8x3xf32>
    func.return %1 : tensor<8x3xf32>
  }
}
"""


def read(text: str) -> ModuleOp:
    module = parse_module(text, make_context())
    verify_module(module)
    return module


def specialized(text: str, **sizes: int) -> ModuleOp:
    module = read(text)
    SpecializeShapesPass(sizes).apply(make_context(), module)
    verify_module(module)
    return module


def test_nothing_but_numbers_is_left() -> None:
    assert module_text(specialized(OPEN, s0=4, s1=5)) == module_text(read(CLOSED))


@pytest.mark.parametrize(
    ("sizes", "text"),
    [
        ({"s0": 3, "s1": 5}, r"takes for granted that s0 % 2 == 0, got s0 = 3, s1 = 5\n  at: model.py:7"),
        ({"s0": 10, "s1": 5}, "symbol s0 is 10, expected 2 to 9"),
        ({"s0": 4}, "symbol s1 has no value"),
        ({"s0": 4, "s1": 5, "s2": 1}, r"no symbol s2\n  try: its symbols are s0 \(2 to 9\), s1 \(0 or more\)"),
    ],
)
def test_other_sizes_are_refused_and_the_module_stays(sizes: dict[str, int], text: str) -> None:
    module = read(OPEN)
    with pytest.raises(InputError, match=text):
        SpecializeShapesPass(sizes).apply(make_context(), module)
    assert module_text(module) == module_text(read(OPEN))


def test_a_program_of_numbers_is_refused() -> None:
    with pytest.raises(InputError, match="no symbols"):
        specialized(CLOSED, s0=4)


def test_no_extent_is_less_than_nothing() -> None:
    with pytest.raises(LoweringError, match="an extent of -4 for s0 = 2"):
        specialized(OPEN.replace('"2 * s0"', '"2 * s0 - 8"'), s0=2, s1=1)


def test_symbols_are_options_of_the_pass() -> None:
    (spec,) = parse_pipeline("specialize-shapes{s0=33 s1=2}")
    pass_ = SpecializeShapesPass.from_spec(spec)
    assert pass_.sizes == {"s0": 33, "s1": 2}
    assert str(pass_.spec()) == "specialize-shapes{s0=33 s1=2}"


@pytest.mark.parametrize("text", ["s0=1,2", "s0", "s0=true", "s0=many", "s0=1.5"])
def test_a_symbol_is_a_whole_number(text: str) -> None:
    (spec,) = parse_pipeline(f"specialize-shapes{{{text}}}")
    with pytest.raises(ValueError, match="symbol s0 is a whole number"):
        SpecializeShapesPass.from_spec(spec)


def test_sizes_in_range_pass() -> None:
    check_sizes({"s0": SymbolRange(2, 3)}, {"s0": 3})
