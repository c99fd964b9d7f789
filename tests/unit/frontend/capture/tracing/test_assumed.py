"""Conditions that a trace takes for granted are noted in the program, and may be left out of it."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor
from torch.export import ExportedProgram

from spyre_mlir.frontend.capture.tracing.assumed import assumed_by, condition_of, note_assumed, without_assumed
from tests.functions import FunctionModel

X = torch.ones(4, 3)


def positive(x: Tensor) -> Tensor:
    rows = x[x > 0]
    torch._check(rows.shape[0] >= 1)
    return rows * 2


def noted() -> ExportedProgram:
    exported = torch.export.export(FunctionModel(positive), (X,))
    note_assumed(exported, {"u0 >= 1", "u7 >= 1"})
    return exported


def conditions(exported: ExportedProgram) -> list[str]:
    checks = exported.graph.find_nodes(op="call_function", target=torch.ops.aten._assert_scalar.default)
    return [condition_of(check) for check in checks]


def test_a_file_keeps_the_notes(tmp_path: Path) -> None:
    torch.export.save(noted(), str(tmp_path / "program.pt2"))
    assert assumed_by(torch.export.load(str(tmp_path / "program.pt2"))) == {"u0 >= 1"}


def test_other_checks_stay() -> None:
    exported = noted()
    free = without_assumed(exported)
    assert "u0 >= 1" in conditions(exported) and assumed_by(free) == frozenset()
    assert conditions(free) == [said for said in conditions(exported) if said != "u0 >= 1"] != []
    assert free.module()(-X).numel() == 0


def test_sizes_that_are_taken_for_equal_have_each_others_conditions() -> None:
    def sums(x: Tensor) -> tuple[Tensor, ...]:
        first, second, third, fourth = (x[x > place] for place in range(4))
        torch._check(first.shape[0] >= 1)
        torch._check(fourth.shape[0] >= 1)
        return first + second, second * third, fourth

    exported = torch.export.export(FunctionModel(sums), (X + 4,))
    note_assumed(exported, {"u0 >= 1", "Eq(u0, u1)", "Eq(u1, u2)"})
    assert assumed_by(exported) == {"u0 >= 1", "u1 >= 1", "u2 >= 1", "Eq(u0, u1)", "Eq(u1, u2)"}
