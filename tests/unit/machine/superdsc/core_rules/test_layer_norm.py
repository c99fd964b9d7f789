"""The steps of a layer norm and of a quantised row, on one core, against numpy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Constant, Descriptor, Dim, OpClass, Operand
from spyre_mlir.errors import FaultKind, InputError, MachineFault, UnsupportedError
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.memory.operand_views import ByteAccess, TrackedArray
from spyre_mlir.machine.superdsc.core_rules.layer_norm import exx2, layernormscale, quantscale
from spyre_mlir.machine.superdsc.core_rules.per_core import CoreWork
from tests.unit.machine.superdsc import works

DL16 = "SEN169_FP16"
A, C = 0, 1 << 20
X = np.random.default_rng(4).integers(-8, 8, (3, 128)).astype(float)
WIDE = Operand(("mb", "out"), (3, 128), "out", DL16, (str(A),))
MOMENTS = Operand(("mb",), (3,), None, DL16, (str(C),))
ROW, COLUMN = np.indices((3, 128))
CELLS = A + COLUMN // 64 * 3 * 128 + ROW * 128 + COLUMN % 64 * 2
SCALE = Constant("exx2scale", DL16, 0x3000)  # 2**-7, one of 128
EPSILON = Constant("eps", DL16, 0x3C00)  # a half
QUANTS = (Constant("clipMin", DL16, 0x4000), Constant("clipMax", DL16, 0x4080), Constant("mulConst", DL16, 0x3C00))

Rule = Callable[[CoreWork], Sequence[tuple[ByteAccess, TrackedArray]]]


def work_of(name: str, operands: tuple[Operand, ...], *constants: Constant, split: int = 1) -> CoreWork:
    """One core's work on memory that holds X."""
    memory = ExactMemory()
    memory.add_region("a", A, 6 * 128)
    memory.add_region("c", C, 6 * 128)
    memory.store(CELLS, X, DL16)
    dims = (Dim("mb", 3), Dim("out", 128, split))
    view = Descriptor(4, name, "sfp", OpClass.REDUCTION, dims, operands, constants)
    return works.work_of(view, memory)


def unwritten(rule: Rule, work: CoreWork, *cells: int) -> None:
    """Make some bytes of the input unwritten, and see the rule refuse them."""
    region = work.memory.locate(A, A + 1)
    for cell in cells:
        region.states.write_elements(np.asarray([cell]), 2, DL16, np.asarray([False]), 0)
    with pytest.raises(MachineFault) as caught:
        rule(work)
    assert (caught.value.kind, caught.value.place.low) == (FaultKind.UNINITIALISED_READ, cells[0])


def test_both_moments_of_every_row_lie_side_by_side() -> None:
    work = work_of("exx2", (WIDE, MOMENTS), SCALE)
    (first, mean), (second, square) = exx2(work)
    assert (first.base, second.base) == (C, C + 2)
    assert first.axes == second.axes == work.accesses[1].axes
    assert np.array_equal(mean.values, X.mean(axis=1, keepdims=True))
    assert np.array_equal(square.values, (X**2).mean(axis=1, keepdims=True))
    assert mean.written is None
    assert square.written is None


def test_moments_of_bytes_that_nobody_wrote_are_refused() -> None:
    unwritten(exx2, work_of("exx2", (WIDE, MOMENTS), SCALE), 128)  # lane 0 of row 1
    unwritten(exx2, work_of("exx2", (WIDE, MOMENTS), SCALE), 128 + 6)  # any lane enters the sum


def test_moments_are_of_whole_rows_and_in_a_stick_per_row() -> None:
    halves = replace(WIDE, start=(str(A), str(A + 3 * 128)))
    with pytest.raises(UnsupportedError, match="exx2 over dim out, which is divided over cores"):
        exx2(work_of("exx2", (halves, replace(MOMENTS, start=(str(C), str(C)))), SCALE, split=2))
    dense = replace(WIDE, start=(str(C),))
    with pytest.raises(UnsupportedError, match="moments that are not in a stick per row") as caught:
        exx2(work_of("exx2", (WIDE, dense), SCALE))
    assert caught.value.where == "op 4:exx2, Tensor1, core 0"
    with pytest.raises(InputError, match="'exx2scale'"):
        exx2(work_of("exx2", (WIDE, MOMENTS)))


SOURCE = replace(MOMENTS, start=(str(A),))


def scale_of(*moments: tuple[float, float]) -> CoreWork:
    """The moments of three rows, in lanes 0 and 1 of their sticks."""
    work = work_of("layernormscale", (SOURCE, MOMENTS), EPSILON)
    for row, pair in enumerate(moments):
        work.memory.store(A + 128 * row + np.asarray([0, 2]), np.asarray(pair), DL16)
    return work


def test_the_scale_of_a_row_is_one_over_the_root_of_its_variance() -> None:
    """E[x] = 1, E[x*x] = 4.5: 4.5 - 1 + 0.5 is 4. E[x] = -2 and 3.75: a quarter is left. E[x] = 0 and 15.5: 16."""
    work = scale_of((1.0, 4.5), (-2.0, 3.75), (0.0, 15.5))
    ((target, made),) = layernormscale(work)
    assert target is work.accesses[-1]
    assert np.array_equal(made.values, [[0.5], [2.0], [0.25]])
    assert made.written is None


def test_a_scale_of_nothing_is_infinite() -> None:
    """E[x*x] - E[x]**2 is minus a half: with epsilon, 0; below, no number."""
    ((_, made),) = layernormscale(scale_of((1.0, 0.5), (1.0, 0.25), (0.0, 0.5)))
    assert np.isinf(made.values[0, 0])
    assert np.isnan(made.values[1, 0])
    assert made.values[2, 0] == 1.0


@pytest.mark.parametrize("lane", [0, 1])
def test_a_scale_needs_both_moments(lane: int) -> None:
    work = scale_of((1.0, 4.5), (1.0, 4.5), (1.0, 4.5))
    region = work.memory.locate(A, A + 1)
    region.states.write_elements(np.asarray([256 + 2 * lane]), 2, DL16, np.asarray([False]), 0)
    with pytest.raises(MachineFault, match="1 sticks were never written in lane 0") as caught:
        layernormscale(work)
    assert (caught.value.kind, caught.value.place.low) == (FaultKind.UNINITIALISED_READ, 256)


def test_moments_are_read_from_a_stick_per_row() -> None:
    with pytest.raises(UnsupportedError, match="moments that are not in a stick per row") as caught:
        layernormscale(work_of("layernormscale", (WIDE, MOMENTS), EPSILON))
    assert caught.value.where == "op 4:layernormscale, Tensor0, core 0"


def test_the_scale_of_a_quantised_row_is_its_largest_magnitude_between_two_numbers() -> None:
    """Magnitudes 1, 2.5 and 8 between 2 and 2.5, halved."""
    work = work_of("quantscalepertokenfp8", (WIDE, MOMENTS), *QUANTS)
    rows = np.zeros((3, 128))
    rows[0, 100], rows[1, 3], rows[2, 64] = 1.0, -2.25, -8.0
    work.memory.store(CELLS, rows, DL16)
    ((target, made),) = quantscale(work)
    assert target is work.accesses[-1]
    assert made.values.tolist() == [[1.0], [1.125], [1.25]]
    assert made.written is None
    unwritten(quantscale, work, 128 + 6)
