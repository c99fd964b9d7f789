"""Functions of a module: declarations have a name and no body, and the first one with a body begins a program."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.test import TestOp
from xdsl.ir import Block, Region

from spyre_mlir.dialects.ir.functions import first_function, functions, functions_by_name, returned_by


def function(name: str) -> FuncOp:
    return FuncOp(name, ([], []), Region(Block([ReturnOp()])))


def test_functions_without_a_body_have_a_name_alone() -> None:
    main, step, declared = function("main"), function("step"), FuncOp.external("declared", [], [])
    module = ModuleOp([declared, TestOp(), main, step])
    assert functions(module) == [main, step]
    assert list(functions_by_name(module).items()) == [("declared", declared), ("main", main), ("step", step)]
    assert first_function(module) is main


def test_results_are_those_of_the_end() -> None:
    made = TestOp(result_types=[f32, f32])
    block = Block([made, ReturnOp(made.results[1], made.results[0])])
    assert list(returned_by(FuncOp("main", ([], [f32, f32]), Region(block)))) == [made.results[1], made.results[0]]


def test_a_module_of_declarations_begins_with_nothing() -> None:
    with pytest.raises(ValueError, match="without a function"):
        first_function(ModuleOp([FuncOp.external("declared", [], [])]))
