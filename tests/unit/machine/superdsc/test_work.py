"""What is known of an operation before any element is."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Constant, Descriptor, Dim, OpClass, Operand
from spyre_mlir.machine.hardware_functions import meaning_of
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.memory.operand_views import OperandLayout, slice_table
from spyre_mlir.machine.superdsc.work import KeptMatrix, Room, Tile, TileWork

DL16 = "SEN169_FP16"
PADDED = (Dim("mb", 4, 2), Dim("out", 64, valid=40))
PLAIN = (Dim("mb", 4, 2), Dim("out", 64))


def work(function: str, dims: tuple[Dim, ...], *operands: Operand, mask: int = -1) -> TileWork:
    """A function on all cores together."""
    constants = (Constant("bound", DL16, 0x3E00),)  # 1.0
    view = Descriptor(0, function, "sfp", OpClass.POINTWISE, dims, operands, constants=constants, mask_constant=mask)
    accesses = [OperandLayout(view, number, ExactMemory()).whole(slice_table(view)) for number in range(len(operands))]
    tile = Tile((0, 1), (0,) * len(dims), tuple(access for access in accesses if access is not None))
    assert len(tile.accesses) == len(operands)
    return TileWork(view, meaning_of(function), tile)


def rows(start: int) -> Operand:
    """Four rows of 64 elements on two cores."""
    return Operand(("mb", "out"), (4, 64), "out", DL16, (str(start), str(start + 256)))


@pytest.mark.parametrize(
    ("function", "inputs", "dims", "mask", "streams", "copies"),
    [
        ("add", 2, PLAIN, -1, True, False),
        ("identity", 1, PLAIN, -1, True, True),
        ("identity", 1, PADDED, 0, False, False),
        ("identity", 1, PADDED, -1, False, True),
        ("sum", 1, PLAIN, -1, False, False),
    ],
)
def test_how_an_operation_can_run(
    function: str, inputs: int, dims: tuple[Dim, ...], mask: int, streams: bool, copies: bool
) -> None:
    made = work(function, dims, *(rows(4096 * n) for n in range(inputs + 1)), mask=mask)
    assert (made.streams, made.copies) == (streams, copies)
    assert made.shape == (4, 64) and not made.gathers
    assert made.constants == {"bound": 1.0}


def test_padding_counts_as_the_mask_constant_from_its_first_element_on() -> None:
    assert work("add", PADDED, rows(0), rows(4096), rows(8192), mask=0).masked == (((1, 40),),) * 3
    assert work("add", PADDED, rows(0), rows(4096), rows(8192)).masked == ((),) * 3


def test_a_contraction_is_a_product_of_two_matrices() -> None:
    dims = (Dim("mb", 2, 2), Dim("in", 64), Dim("out", 64))
    left = Operand(("mb", "in"), (2, 64), "in", DL16, ("0", "128"))
    right = Operand(("out", "in"), (64, 64), "out", DL16, ("4096", "4096"))
    result = Operand(("mb", "out"), (2, 64), "out", DL16, ("16384", "16512"))
    axes = work("batchmatmul", dims, left, right, result).contracted
    assert (axes.summed, axes.batch, axes.rows, axes.inner, axes.columns) == ([1], [], [0], [1], [2])
    assert (axes.shape, axes.order) == ([2, 64, 1], [0, 2, 1])


@pytest.mark.usefixtures("only_new_garbage")
def test_copies_take_no_more_room_than_there_is() -> None:
    room, matrices = Room(100), [np.zeros(5), np.zeros(6), np.zeros(8)]
    assert [room.keep(matrix) for matrix in matrices] == [True, True, False]
    del matrices[0]
    gc.collect()
    assert room.left == 100 - 6 * 8
    assert not room.keep(matrices[1])  # eight numbers, and room for six


def test_a_copy_fits_the_contents_it_was_made_from() -> None:
    cells = np.zeros(4, np.uint8)
    kept = KeptMatrix.of(cells, np.zeros((2, 2), np.float32))
    assert kept.fits(cells, np.zeros(1, np.float32))
    assert not kept.fits(cells.copy(), np.zeros(1, np.float32))
    assert not kept.fits(cells, np.zeros(1, np.float64))
