"""Calls on parts: numbers cost none."""

from __future__ import annotations

import torch

from tests.unit.frontend.capture.complex_pairs.paired import finite, targets

Z = finite()


def test_an_interleaved_input_is_taken_apart_once() -> None:
    made = targets(lambda z: z * z + z.real, Z)
    assert made.count("aten.select.int") == 2


def test_an_interleaved_input_that_is_only_read_as_such_is_not_taken_apart() -> None:
    assert targets(lambda z: torch.view_as_real(z) * 2, Z) == ["aten.mul.Tensor"]
    assert targets(lambda x: torch.view_as_real(torch.view_as_complex(x)) + 1, torch.ones(3, 2)) == ["aten.add.Tensor"]


def test_a_part_alone_needs_no_other_part() -> None:
    assert targets(lambda z: (z * 2j + 1).imag, Z).count("aten.mul.Tensor") == 2
    assert "aten.stack.default" not in targets(lambda z: (z * z).real + (z * z).imag, Z)


def test_numbers_are_computed_with_ahead() -> None:
    assert targets(lambda z: (z + 1).real, Z).count("aten.add.Tensor") == 1
    assert "aten.full.default" not in targets(lambda x: torch.fft.fft(x.to(torch.complex64)).real, torch.ones(8))


def test_a_result_keeps_its_name() -> None:
    from spyre_mlir.frontend import import_program
    from tests.functions import FunctionModel

    program = import_program(FunctionModel(lambda z: z.abs()), (Z,))
    assert "%abs = " in str(program.module)
