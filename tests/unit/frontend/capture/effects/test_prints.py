"""Prints become calls that count as read; other programs stay as they are."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.effects.prints import PRINTS, explicit_prints
from tests.functions import FunctionModel

X = torch.ones(4, 3)
PRINT: Any = getattr(torch._higher_order_ops, "print", None)
has_print = pytest.mark.skipif(PRINT is None, reason="this torch has no print that is traced")


def exported(program: Any, **options: Any) -> ExportedProgram:
    return torch.export.export(FunctionModel(program), (X,), **options)


def test_programs_without_prints_are_the_same_object() -> None:
    before = exported(lambda x: x + 1)
    assert explicit_prints(before) is before


@has_print
def test_a_print_is_given_its_tensors_by_name_and_the_rest_as_text() -> None:
    def program(x: Tensor) -> Tensor:
        PRINT("{} {} {of:.1f} {n}", "all", x, of=x.sum(), n=3)
        return x

    before = exported(program)
    after = explicit_prints(before)
    (call,) = after.graph.find_nodes(op="call_function", target=torch.ops.host.printed.default)
    values, names, text, known = call.args
    assert values[1].target is torch.ops.aten.sum.default
    assert (names, text, known) == (["1", "of"], "{} {} {of:.1f} {n}", "{'0': 'all', 'n': 3}")
    assert any(node.target in PRINTS for node in before.graph.nodes), "the program given stays as it is"


@has_print
def test_a_size_that_is_a_symbol_is_refused() -> None:
    def program(x: Tensor) -> Tensor:
        PRINT("{}", x.shape[0])
        return x

    before = exported(program, dynamic_shapes=(({0: Dim.DYNAMIC},),))
    with pytest.raises(UnsupportedError, match="a print of sym_size_int"):
        explicit_prints(before)
