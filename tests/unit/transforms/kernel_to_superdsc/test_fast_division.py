"""Divisions of products by time: the winners, and what keeps the usual one."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from xdsl.dialects.builtin import IntegerAttr, i64

from spyre_mlir.dialects.spyre.attributes import IterDim, SpaceAttr
from spyre_mlir.dialects.spyre.kernel import AllocOp, KernelOp
from spyre_mlir.dialects.superdsc.model.descriptor import Dim
from spyre_mlir.dialects.superdsc.model.work import work_of
from spyre_mlir.hw.cost import cost
from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.transforms.divide_work import footprints, loops_of
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import Placed, describe_kernel
from spyre_mlir.transforms.kernel_to_superdsc.fast_division import (
    Price,
    _kept,
    _neighbour,
    _price,
    divided,
    fastest,
)
from tests.unit.machine.modules import device
from tests.unit.transforms.levels import ops, passed


def matrix(*shape: int) -> str:
    last = len(shape) - 1
    return device(shape, last, (*range(last - 1), last, last - 1))


def usual(m: int, k: int, n: int, *, divide: str = "default", batch: str = "", softly: bool = False) -> KernelOp:
    """A product, divided as usual; `softly` has five more kernels use the result, as a softmax does."""
    shapes = [(m, k), (k, n), (m, n)]
    extra = [int(batch)] if batch else []
    a, b, c = (matrix(*extra, *s) for s in shapes)
    loop, walk = (f"b = {batch}, ", "b, ") if batch else ("", "")
    host = f"tensor<{'x'.join(map(str, [*extra, m, n]))}xf16>"
    more = ""
    if softly:
        one = f'spyre.kernel.compute "exp" [m = {m}, n = {n}] ins(%2[m, n] : {c}) outs(%{{}}[m, n] : {c})\n'
        more = "".join(f"%e{i} = spyre.kernel.alloc : {c}\n{one.format(f'e{i}')}" for i in range(5))
    text = f"""func.func @main() -> {host} {{
      %0 = spyre.kernel.alloc : {a}
      %1 = spyre.kernel.alloc : {b}
      %2 = spyre.kernel.alloc : {c}
      spyre.kernel.compute "batchmatmul" [{loop}m = {m}, n = {n}, k = {k}]
        ins(%0[{walk}m, k] : {a}, %1[{walk}k, n] : {b}) outs(%2[{walk}m, n] : {c})
      {more}
      %3 = spyre.kernel.alloc : {c}
      %r = spyre.kernel.from_device %{"3" if softly else "2"} : {c} to {host}
      func.return %r : {host}
    }}"""
    module = passed(text, "divide-work", products=divide)
    return next(op for op in ops(module, KernelOp) if op.function_name == "batchmatmul")


def by_time(op: KernelOp, spec: SpyreSpec = SPYRE) -> dict[str, int]:
    loops = loops_of(op)
    return fastest(op, loops, footprints(op, loops), spec)


def test_a_space_in_other_slices() -> None:
    space = SpaceAttr((IterDim("m", 8, 4), IterDim("n", 6)))
    assert divided(space, {"n": 3, "m": 1}) == SpaceAttr((IterDim("m", 8, 1), IterDim("n", 6, 3)))


def test_a_division_costs_its_own_time_and_that_of_others() -> None:
    op = usual(512, 4096, 4096)
    own = cost(work_of(describe_kernel(op, 0).descriptor))
    assert Price(own, 3.5).total == own.total + 3.5


def test_a_long_product_is_divided_for_speed() -> None:
    """Measured best for a Granite projection: no operand is asked for by more than eight cores."""
    op = usual(512, 4096, 4096)
    assert op.space_splits() == {"m": 32, "n": 1, "k": 1}
    found = by_time(op)
    assert prod(found.values()) == 32 and found["k"] == 1 and max(found.values()) <= 8
    assert op.space_splits() == {"m": 32, "n": 1, "k": 1}  # it only says so


def test_short_products_stay() -> None:
    """256 x 512 x 128 takes less than any product that was measured."""
    op = usual(256, 512, 128)
    assert by_time(op) == op.space_splits()


def test_a_result_in_the_scratchpads_counts() -> None:
    """Five uses of the result would go through device memory: more than the better division gains."""
    alone, used = usual(512, 128, 4096), usual(512, 128, 4096, softly=True)
    assert by_time(used) == used.space_splits()
    full = replace(SPYRE, lx_usable_bytes=1)
    assert by_time(used, full) == by_time(alone, full)  # then it is in device memory as things are


def test_no_more_cores_than_now() -> None:
    op = usual(512, 4096, 4096)
    op.space = divided(op.space, {"m": 8, "n": 1, "k": 1})
    assert prod(by_time(op).values()) >= 8


# 512 x 4096 halves are 4 MiB; device memory moves 150 GB a second.
MOVED_US = 512 * 4096 * 2 / 150e3


def test_neighbours_are_intermediates_with_what_their_other_users_lose() -> None:
    used = usual(512, 128, 4096, softly=True)
    near = _neighbour(used, 2, SPYRE)
    assert near is not None and near.number == 2
    assert near.others_us == pytest.approx(5 * MOVED_US, rel=1e-12)
    left = _neighbour(used, 0, SPYRE)
    assert left is not None and left.others_us == 0
    assert _neighbour(usual(512, 128, 4096), 2, SPYRE) is None  # the host reads it


def test_what_has_no_room_or_a_place_is_no_neighbour() -> None:
    """A core has 16 rows of 4096: 128 KiB."""
    used = usual(512, 128, 4096, softly=True)
    rows = 16 * 4096 * 2
    assert _neighbour(used, 2, replace(SPYRE, lx_usable_bytes=rows)) is not None
    assert _neighbour(used, 2, replace(SPYRE, lx_usable_bytes=rows - 1)) is None
    owner = used.operands[2].owner
    assert isinstance(owner, AllocOp)
    owner.offset = IntegerAttr(0, i64)
    assert _neighbour(used, 2, SPYRE) is None


def test_a_division_keeps_the_neighbours_that_it_slices_alike() -> None:
    used = usual(512, 128, 4096, softly=True)
    before = used.space
    near = [n for number in range(3) if (n := _neighbour(used, number, SPYRE)) is not None]
    assert [n.number for n in near] == [0, 2]  # all cores read the whole of the second operand
    assert _kept(used, near, {"m": 32, "n": 1, "k": 1}) == {0, 2}
    assert _kept(used, near, {"m": 4, "n": 8, "k": 1}) == set()
    assert used.space == before


def test_neighbours_that_are_kept_are_read_in_the_scratchpads() -> None:
    used = usual(512, 128, 4096, softly=True)
    made, near = describe_kernel(used, 0), _neighbour(used, 2, SPYRE)
    assert near is not None
    same, other = (
        _price(used, made.descriptor, made.labels, [near], splits)
        for splits in ({"m": 32, "n": 1, "k": 1}, {"m": 4, "n": 8, "k": 1})
    )
    assert (same.others_us, other.others_us) == (0, near.others_us)
    work = work_of(made.descriptor)
    kept = [replace(t, local=n == 2) for n, t in enumerate(work.operands)]
    assert same.own == cost(replace(work, operands=tuple(kept)))
    alone = _price(used, made.descriptor, made.labels, [], {"m": 32, "n": 1, "k": 1})
    assert alone.own == cost(work) and alone.others_us == 0
    dims = tuple(replace(d, split={"m": 4, "n": 8}.get(loop, 1)) for loop, d in _by_loop(made))
    assert other.own == cost(work_of(replace(made.descriptor, dims=dims)))


def _by_loop(made: Placed) -> list[tuple[str, Dim]]:
    """The loops of a descriptor by their names at the kernel level."""
    names = {label: name for name, label in made.labels.items()}
    return [(names[d.label], d) for d in made.descriptor.dims]
