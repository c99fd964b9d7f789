"""The k largest of a dim and their places, against numpy; and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand
from spyre_mlir.errors import FaultKind, MachineFault, UnsupportedError
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.superdsc.core_rules.per_core import CoreWork
from spyre_mlir.machine.superdsc.core_rules.topk import topkindex, topkvalue
from tests.unit.machine.superdsc import works

DL16 = "SEN169_FP16"
A, C = 0, 1 << 20
X = np.random.default_rng(2).integers(-3, 4, (2, 6, 64)).astype(float)  # many are equal
DIMS = (Dim("mb", 2), Dim("x", 6), Dim("y", 3), Dim("out", 64))
SOURCE = Operand(("out", "x", "mb"), (64, 6, 2), "out", DL16, (str(A),))
TARGET = Operand(("out", "y", "mb"), (64, 3, 2), "out", DL16, (str(C),))


def work_of(
    dims: tuple[Dim, ...] = DIMS, source: Operand = SOURCE, target: Operand = TARGET, name: str = "topkvalue"
) -> CoreWork:
    memory = ExactMemory()
    memory.add_region("a", A, 12 * 128)
    memory.add_region("c", C, 12 * 128)
    memory.store(A + 2 * np.arange(X.size), X.reshape(-1), DL16)
    view = Descriptor(5, name, "sfp", OpClass.TOP_K, dims, (source, target))
    return works.work_of(view, memory)


def test_the_largest_come_in_falling_order() -> None:
    work = work_of()
    ((target, made),) = topkvalue(work)
    assert target is work.accesses[-1]
    assert made.values.shape == (2, 1, 3, 64)
    assert np.array_equal(made.values[:, 0], np.sort(X, axis=1)[:, ::-1][:, :3])
    assert made.written is None


def test_equal_values_come_in_the_order_of_their_places() -> None:
    ((_, made),) = topkindex(work_of())
    wanted = np.asarray(
        [[sorted(range(6), key=lambda at: (-X[b, at, lane], at))[:3] for lane in range(64)] for b in range(2)]
    )
    assert np.array_equal(made.values[:, 0], wanted.transpose(0, 2, 1))
    assert made.values.dtype == np.float64


def test_all_may_be_taken() -> None:
    dims = (Dim("mb", 2), Dim("x", 6), Dim("y", 6), Dim("out", 64))
    ((_, made),) = topkvalue(work_of(dims, target=replace(TARGET, extents=(64, 6, 2))))
    assert np.array_equal(made.values[:, 0], np.sort(X, axis=1)[:, ::-1])
    more = (Dim("mb", 2), Dim("x", 6), Dim("y", 7), Dim("out", 64))
    with pytest.raises(UnsupportedError, match="7 of 6 elements") as caught:
        topkvalue(work_of(more, target=replace(TARGET, extents=(64, 7, 2))))
    assert caught.value.where == "op 5:topkvalue, Tensor1, core 0"


def test_lanes_of_padding_stay_padding() -> None:
    work = work_of()
    region = work.memory.locate(A, A + 1)
    at = np.arange(12) * 128
    region.states.write_elements(at + 10, 2, DL16, np.zeros(12, np.bool_), 0)
    ((_, made),) = topkvalue(work)
    assert made.written is not None
    assert np.flatnonzero(~made.written.reshape(-1)).tolist() == [5, 64 + 5]
    region.states.write_elements(at[3:4], 2, DL16, np.zeros(1, np.bool_), 0)
    with pytest.raises(MachineFault, match="enter a reduction") as caught:
        topkvalue(work)
    assert (caught.value.kind, caught.value.place.low) == (FaultKind.UNINITIALISED_READ, 3 * 128)


def test_one_dim_is_searched_and_one_is_made() -> None:
    both = replace(TARGET, order=("out", "y"), extents=(64, 3))
    says = r"topkvalue from dims \['out', 'x', 'mb'\] to \['out', 'y'\]"
    with pytest.raises(UnsupportedError, match=says) as caught:
        topkvalue(work_of(target=both))
    assert caught.value.where == "op 5:topkvalue, Tensor1, core 0"
    with pytest.raises(UnsupportedError, match="topkindex from dims"):
        topkindex(work_of(target=replace(TARGET, order=("out", "x", "mb"), extents=(64, 6, 2)), name="topkindex"))
    with pytest.raises(UnsupportedError, match="topkvalue from dims"):
        topkvalue(work_of(target=replace(TARGET, order=("out", "mb"), extents=(64, 2))))
    with pytest.raises(UnsupportedError, match="topkvalue from dims"):
        topkvalue(work_of(target=replace(TARGET, order=("out", "y", "x", "mb"), extents=(64, 3, 6, 2))))


def test_neither_dim_is_in_the_stick() -> None:
    dims = (Dim("x", 64), Dim("y", 64), Dim("out", 64))
    searched = Operand(("out", "x"), (64, 64), "x", DL16, (str(A),))
    made = Operand(("out", "y"), (64, 64), "y", DL16, (str(C),))
    plain = replace(searched, stick="out", extents=(64, 6)), replace(made, stick="out", extents=(64, 6))
    small = (Dim("x", 6), Dim("y", 6), Dim("out", 64))
    assert topkvalue(work_of(small, *plain))[0][1].values.shape == (1, 6, 64)
    memory_free = work_of(small, *plain)
    for operands, label in (((searched, plain[1]), "x"), ((plain[0], made), "y")):
        view = replace(memory_free.view, dims=dims, operands=operands)
        with pytest.raises(UnsupportedError, match=f"topkvalue with dim {label} in the stick"):
            topkvalue(replace(memory_free, view=view))


@pytest.mark.parametrize("label", ["x", "y"])
def test_one_core_has_all_of_both(label: str) -> None:
    work = work_of()
    dims = tuple(replace(dim, split=3) if dim.label == label else dim for dim in DIMS)
    with pytest.raises(UnsupportedError, match=f"topkvalue over dim {label}, which is divided over cores"):
        topkvalue(replace(work, view=replace(work.view, dims=dims)))
