"""The names by which kernels can be asked for, and what is said of names that none goes by."""

from __future__ import annotations

import pytest

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError
from spyre_mlir.report.explanation.planned_program import PlannedProgram


@pytest.fixture(scope="module")
def planned(gated: CompiledModel) -> PlannedProgram:
    return PlannedProgram.of(gated._flat(), gated._options)


def files(program: PlannedProgram, name: str) -> list[str]:
    return [kernel.name for kernel in program.named(name)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sdsc_1", [1]),
        ("sdsc_1.json", [1]),
        ("silu", [1]),
        ("aten.silu", [1]),
        ("%silu", [1]),
        ("%3", [1]),
        ("batchmatmul", [0, 2]),
        ("linear", [0, 2]),
        ("softmax", [3, 4, 5, 6, 7]),
        ("aten.softmax.int", [3, 4, 5, 6, 7]),
        ("up", [0]),
        ("down", [2]),
    ],
)
def test_names(name: str, expected: list[int], planned: PlannedProgram) -> None:
    assert files(planned, name) == [f"sdsc_{n}" for n in expected]


def test_a_line(planned: PlannedProgram) -> None:
    source = planned.named("sdsc_2")[0].sources[0]
    assert len(files(planned, f"conftest.py:{source.line}")) == 8  # all of it is one line
    assert files(planned, f"{source.file}:{source.line}") == files(planned, f"conftest.py:{source.line}")


def test_the_text_is_that_of_the_compiled_program(gated: CompiledModel, planned: PlannedProgram) -> None:
    """The planner is run beside a record, on a program whose operations are numbered: nothing may follow from that."""
    from spyre_mlir.text.render import module_text

    assert module_text(planned.module) == gated.mlir("spyre.kernel")


@pytest.mark.parametrize(
    ("name", "hint"), [("sofmax", "did you mean softmax or "), ("sdsc_77", "sdsc_7"), ("?", "name an operation")]
)
def test_unknown_names(name: str, hint: str, planned: PlannedProgram) -> None:
    with pytest.raises(InputError) as refused:
        planned.named(name)
    assert refused.value.message == f"no kernel is called '{name}'"
    assert refused.value.hint is not None and hint in refused.value.hint


def test_an_operation_without_kernels(layers: CompiledModel) -> None:
    program = PlannedProgram.of(layers._flat(), layers._options)
    with pytest.raises(InputError, match="no kernel was made for 'unsqueeze'"):
        program.named("unsqueeze")


def test_files_that_are_not_one_per_kernel(rows: CompiledModel) -> None:
    from dataclasses import replace

    program = PlannedProgram.of(rows._flat(), replace(rows._options, loops="unroll"))
    assert files(program, "max") == ["kernel 1"]
