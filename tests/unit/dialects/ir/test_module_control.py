"""Control flow of a module: functions that it calls, arguments that loops carry, and the refusal of any."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.ir.functions import functions_by_name
from spyre_mlir.dialects.ir.module_control import (
    called_by_control,
    carried_arguments,
    has_control_flow,
    refuse_control_flow,
)
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

MODULE = """
func.func @main(%x: tensor<2xf32>, %n: tensor<i1>, %rows: tensor<3x2xf32>) -> tensor<2xf32> {
  %0 = control.while_loop @go do @step(%x, %n) : (tensor<2xf32>, tensor<i1>) -> tensor<2xf32>
  %1 = control.cond %n then @step else @same(%0, %n) : tensor<i1>, (tensor<2xf32>, tensor<i1>) -> tensor<2xf32>
  %2 = control.for_loop @add trips 3 carrying 1 slicing 1 (%1, %rows) :
    (tensor<2xf32>, tensor<3x2xf32>) -> tensor<2xf32>
  func.return %2 : tensor<2xf32>
}
func.func private @go(%i: tensor<2xf32>, %n: tensor<i1>) -> tensor<i1> {
  func.return %n : tensor<i1>
}
func.func private @step(%i: tensor<2xf32>, %n: tensor<i1>) -> tensor<2xf32> {
  func.return %i : tensor<2xf32>
}
func.func private @same(%i: tensor<2xf32>, %n: tensor<i1>) -> tensor<2xf32> {
  func.return %i : tensor<2xf32>
}
func.func private @add(%c: tensor<2xf32>, %e: tensor<1x2xf32>) -> tensor<2xf32> {
  func.return %c : tensor<2xf32>
}
"""
PLAIN = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  func.return %x : tensor<2xf32>\n}"


def test_all_functions_but_the_first_are_called() -> None:
    assert called_by_control(parse_module(MODULE, make_context())) == {"go", "step", "same", "add"}
    assert called_by_control(parse_module(PLAIN, make_context())) == set()


def test_a_body_gives_the_next_values_of_what_it_carries() -> None:
    named = functions_by_name(parse_module(MODULE, make_context()))
    for name, number in (("step", 0), ("go", None), ("add", 0)):
        assert carried_arguments(named[name]) == {named[name].body.block.args[0]: number}
    assert carried_arguments(named["same"]) == carried_arguments(named["main"]) == {}


def test_control_flow_is_refused_by_its_op() -> None:
    loops, plain = parse_module(MODULE, make_context()), parse_module(PLAIN, make_context())
    with pytest.raises(
        UnsupportedError, match=r"control\.while_loop: a graph is for programs in which the host decides"
    ):
        refuse_control_flow(loops, "a graph")
    refuse_control_flow(plain, "a graph")
    assert has_control_flow(loops) and not has_control_flow(plain)
