"""Sizes bound at run time: the operation for the size at hand, and sizes that the file does not allow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand, SymbolicSize
from spyre_mlir.errors import InputError
from spyre_mlir.machine.superdsc.bound_sizes import resolved

DL16 = "SEN169_FP16"


def program() -> Descriptor:
    """Up to 256 rows over two cores, in steps of 32; the second operand lies in LX with three rows behind its 128."""
    dims = (Dim("mb", 256, 2, symbolic=SymbolicSize("n", -5, 32)), Dim("out", 64, 1, 60))
    outside = Operand(("mb", "out"), (256, 64), "out", DL16, ("0", "16384"))
    inside = Operand(("out", "mb"), (64, 131), "out", DL16, ("0", "0"), component="lx")
    bias = Operand(("out",), (64,), "out", DL16, ("0", "0"))
    return Descriptor(0, "add", "sfp", OpClass.POINTWISE, dims, (outside, bias, inside))


def test_dims_and_tensors_shrink_to_the_size() -> None:
    """192 rows less, 96 of them on each core."""
    bound = resolved(program(), {-5: 64, -6: 1})
    assert bound.dims == (Dim("mb", 64, 2), Dim("out", 64, 1, 60))
    assert [operand.extents for operand in bound.operands] == [(64, 64), (64,), (64, 35)]
    assert bound.operands[0].start == ("0", "16384")


@pytest.mark.parametrize("symbols", [None, {}, {-4: 64}, {-5: 256}])
def test_the_largest_size_is_the_one_of_a_file_without_a_binding(symbols: dict[int, int] | None) -> None:
    bound = resolved(program(), symbols)
    assert bound.dims[0] == Dim("mb", 256, 2)
    assert bound.operands == program().operands


def test_a_file_of_fixed_sizes_stays_as_it_is() -> None:
    fixed = replace(program(), dims=(Dim("mb", 256, 2), Dim("out", 64)))
    assert resolved(fixed, {-5: 64}) is fixed


@pytest.mark.parametrize("size", [0, -32, 288, 48, 1])
def test_a_size_that_the_file_does_not_allow_is_refused(size: int) -> None:
    with pytest.raises(InputError, match=f"size n = {size}") as caught:
        resolved(program(), {-5: size})
    assert caught.value.where == "symbol -5"
    assert caught.value.hint == "it is a multiple of 32 and at most 256"


def test_the_smallest_size_is_one_step() -> None:
    assert resolved(program(), {-5: 32}).dims[0].extent == 32
