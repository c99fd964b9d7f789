"""Tensors that stay on the card: sent once for all programs, and results that become the next run's arguments."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import f32
from xdsl.dialects.func import FuncOp

from spyre_mlir.dialects.spyre.attributes import DeviceTensor
from spyre_mlir.errors import InputError
from spyre_mlir.hw.sticks import StickLayout
from spyre_mlir.machine.bundle.host_program import run_keeping, run_program
from spyre_mlir.machine.bundle.kept_tensors import CardResult, Form, KeptTensor, staying
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.machine.options import MachineOptions
from tests.unit.machine.bundle.host_programs import ROWS, host, numbers, program
from tests.unit.machine.modules import parse

Array = NDArray[Any]
EXACT, DEVICE = MachineOptions(), MachineOptions(numerics="device")
TENSOR = DeviceTensor((4, 64), "SEN169_FP16", StickLayout((0, 1), 1, (4, 64)))
BYTES = 4 * 128  # four rows of a stick


def kept(values: Array | None = None) -> tuple[KeptTensor, list[int]]:
    """A tensor, and how often its numbers were asked for."""
    asked: list[int] = []

    def read() -> Array:
        asked.append(1)
        return numbers() if values is None else values

    return KeptTensor(read), asked


def test_two_programs_share_what_one_of_them_sent() -> None:
    tensor, asked = kept()
    for of in (program(), program()):
        (found,) = run_program(of, [tensor])
        assert np.array_equal(found, -numbers())
    assert (len(asked), tensor.transfers, tensor.card_bytes) == (1, 1, BYTES)


def test_numerics_have_copies_of_their_own() -> None:
    tensor, asked = kept(np.full((4, 64), 1 + 2.0**-12))
    (exact,) = run_program(program(), [tensor], EXACT)
    (rounded,) = run_program(program(), [tensor], DEVICE)
    assert (exact == -1 - 2.0**-12).all()
    assert (rounded == -1).all()
    assert (len(asked), tensor.transfers) == (2, 2)


def test_a_rearranged_tensor_is_a_copy_of_its_own() -> None:
    """Rows in reverse order, for one of two programs."""
    turned = "#spyre.move<[m = 4, n = 64] [-m + 3, n] -> [m, n] of [4, 64]>"
    tensor, _ = kept()
    for _again in range(2):
        (plain,) = run_program(program(), [tensor])
        text = str(program().host).replace(" : tensor<4x64", f" moved [{turned}] : tensor<4x64", 1)
        assert text.count("moved") == 1
        (found,) = run_program(replace(program(), host=parse(text)), [tensor])
        assert np.array_equal(plain, -numbers())
        assert np.array_equal(found, -numbers()[::-1])
    assert (tensor.transfers, tensor.card_bytes) == (2, 2 * BYTES)


def test_a_result_stays_and_is_the_next_argument() -> None:
    tensor, asked = kept()
    for sign in (-1, 1, -1):
        (result,) = run_keeping(program(), [tensor], {0})
        assert isinstance(result, CardResult)
        assert np.array_equal(result.read(), sign * numbers())
        tensor.becomes(result)
    assert (len(asked), tensor.transfers) == (1, 1), "the first value alone came from the host"
    assert tensor.host is not None
    assert np.array_equal(tensor.host(), -numbers())


def test_a_result_is_not_written_over_by_the_run_that_reads_it() -> None:
    tensor, _ = kept()
    (first,) = run_keeping(program(), [tensor], {0})
    assert isinstance(first, CardResult)
    tensor.becomes(first)
    run_program(program(), [tensor])
    assert np.array_equal(first.read(), -numbers())


def test_elements_that_nothing_wrote_are_read_back_and_refused() -> None:
    unwritten = host().replace(
        "spyre.kernel.launch @sdsc_bundle (%d, %o)",
        f"%q = spyre.kernel.alloc : {ROWS}\nspyre.kernel.launch @sdsc_bundle (%d, %q)",
    )
    log = FaultLog("collect")
    (result,) = run_keeping(program(unwritten), [numbers()], {0}, MachineOptions(on_fault="collect"), log=log)
    assert not isinstance(result, CardResult)
    assert [fault.kind.value for fault in log.faults] == ["unwritten-output"]


def test_numbers_beyond_dl16_are_said_by_every_run() -> None:
    tensor, asked = kept(np.full((4, 64), 1e12))
    for _ in range(2):
        log = FaultLog("raise")
        run_program(program(), [tensor], DEVICE, log=log)
        (found,) = [o for o in log.overflows.values() if o.op.startswith("to_device")]
        assert (found.count, found.largest) == (256, 1e12)
    assert len(asked) == 1


def test_a_tensor_without_numbers_is_refused() -> None:
    with pytest.raises(InputError, match="argument 0, 'left' has no value"):
        run_program(program(), [KeptTensor(None)])


def test_padding_is_said_only_where_there_is_some() -> None:
    narrow = DeviceTensor((4, 3), "SEN169_FP16", StickLayout((0, 1), 1, (4, 64)))
    ragged = DeviceTensor((4, 64), "SEN169_FP16", StickLayout((1, 0), 1, (8, 64)))
    assert Form.of(TENSOR, EXACT, zero_padding=True) == Form.of(TENSOR, EXACT)
    assert Form.of(ragged, EXACT, zero_padding=True) != Form.of(ragged, EXACT)
    assert Form.of(narrow, EXACT).tensor == narrow
    assert Form.of(TENSOR, EXACT, elements=(f32,)) != Form.of(TENSOR, EXACT)


def test_what_something_else_reads_does_not_stay() -> None:
    def kept_of(text: str, *numbers: int) -> list[list[int]]:
        main = next(op for op in parse(text).ops if isinstance(op, FuncOp))
        return list(staying(main, numbers).values())

    twice = (
        host()
        .replace("-> tensor<4x64xf32>", "-> (tensor<4x64xf32>, tensor<4x64xf32>)")
        .replace("return %r : tensor<4x64xf32>", "return %r, %r : tensor<4x64xf32>, tensor<4x64xf32>")
    )
    assert kept_of(host(), 0) == [[0]]
    assert kept_of(host()) == []
    assert kept_of(twice, 0, 1) == [[0, 1]]
    assert kept_of(twice, 0) == []
