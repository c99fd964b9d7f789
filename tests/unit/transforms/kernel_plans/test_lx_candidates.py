"""Candidates for the scratchpads in a softmax of 512 x 1024 over 32 cores: lives, bytes and savings by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block

from spyre_mlir.dialects.ir.modules import take_apart
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType, IterDim
from spyre_mlir.dialects.spyre.kernel import AllocOp, ToDeviceOp
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.placement import Request
from spyre_mlir.transforms.kernel_plans.lx_candidates import (
    Candidate,
    candidate_of,
    copies_of,
    copy_op,
    points_of,
    request_of,
    space_of,
)
from spyre_mlir.transforms.utils.kernels.launches import launch_numbers
from tests.unit.transforms.test_place_lx import softmax, through

# A core has 16 rows of 16 sticks, or of one.
ROWS, STATISTICS = 16 * 16 * 128, 16 * 128


@pytest.fixture(scope="module")
def module() -> ModuleOp:
    return through(softmax(512, 1024), "divide-work", options={"divide-work": {"cores": 32}})


@pytest.fixture
def block(module: ModuleOp) -> Block:
    (function,) = module.ops
    return function.regions[0].block


def buffers(block: Block) -> list[Candidate]:
    launches = launch_numbers(block)
    return [c for op in points_of(block) if (c := candidate_of(op, launches)) is not None]


def test_buffers_between_kernels_are_candidates(block: Block) -> None:
    """The result is none, as the host reads it. Ops count by twos; what is used twice saves its sticks twice."""
    points = points_of(block)
    found = [request_of(number, one, points) for number, one in enumerate(buffers(block))]
    assert found == [
        Request(number=0, size=STATISTICS, first=4, last=8, saved=2 * 512),
        Request(number=1, size=ROWS, first=8, last=12, saved=2 * 512 * 16),
        Request(number=2, size=ROWS, first=12, last=20, saved=3 * 512 * 16),
        Request(number=3, size=STATISTICS, first=16, last=20, saved=2 * 512),
    ]
    assert [space_of(one.value) for one in buffers(block)] == ["hbm"] * 4
    assert all(one.alloc is not None and one.local_alloc is None and not one.is_copy for one in buffers(block))


def test_what_two_kernels_read_is_copied_before_the_first(block: Block) -> None:
    points, launches = points_of(block), launch_numbers(block)
    (sent,) = (op for op in points if isinstance(op, ToDeviceOp))
    (copy,) = copies_of(sent, points, launches)
    assert copy.is_copy and copy.alloc is None and copy.value is sent.result
    assert [op.function_name for op, _ in copy.readers] == ["max", "sub"]
    # Read twice, and loaded once for it.
    assert request_of(0, copy, points) == Request(number=0, size=ROWS, first=3, last=8, saved=(2 - 1) * 512 * 16)
    assert len([*sent.result.uses]) == 2  # the trial of a copy leaves nothing behind
    # Of the buffers, two kernels read the exponentials alone.
    assert [len(copies_of(op, points, launches)) for op in points if isinstance(op, AllocOp)] == [0, 0, 1, 0, 0]


def test_a_copy_has_the_slices_of_its_readers(block: Block) -> None:
    points = points_of(block)
    (sent,) = (op for op in points if isinstance(op, ToDeviceOp))
    (copy,) = copies_of(sent, points, launch_numbers(block))
    assert isinstance(sent.result.type, DeviceTensorType)
    room = AllocOp(DeviceTensorType(replace(sent.result.type.data, space="lx")))
    made = copy_op(copy, room.result)
    assert made is not None and made.function_name == "identity"
    assert made.space.data == (IterDim("d0", 512, 32), IterDim("d1", 1024))
    take_apart(made)


def test_what_has_to_be_there_goes_first() -> None:
    text = softmax(64, 1024).replace("%1 = spyre.kernel.alloc :", "%1 = spyre.kernel.alloc at 256 : i64 :")
    lines = text.split("\n")
    lx = [line.replace("stick unit, hbm", "stick unit, lx") if "%1" in line else line for line in lines]
    module = through("\n".join(lx), "divide-work", options={"divide-work": {"cores": 1}})
    (function,) = module.ops
    block = function.regions[0].block
    first, *others = (request_of(number, one, points_of(block)) for number, one in enumerate(buffers(block)))
    assert first.address == 256 and first.saved > sum(one.saved for one in others) > 0
    assert buffers(block)[0].local_alloc is buffers(block)[0].alloc


def test_a_buffer_outside_of_a_function_is_refused(block: Block) -> None:
    one = buffers(block)[0]
    assert one.alloc is not None
    free = one.alloc.clone()
    with pytest.raises(LoweringError, match="a buffer outside of a function\n  try: put the kernels into a function"):
        _ = Candidate(free.result, one.view).home
