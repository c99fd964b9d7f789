"""From files to the description that the cost model prices: bytes and cores counted by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spyre_mlir.backend.read import read_json
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand
from spyre_mlir.dialects.superdsc.model.work import WorkByDivision, work_of
from spyre_mlir.hw.cost import CostKind, Work
from tests.paths import DATA


def work(file: str) -> Work:
    return work_of(describe(read_json(DATA / f"{file}.json")))


def test_an_add_over_32_cores() -> None:
    add = work("superdsc_real/01_add_512x512_32core_hbm")
    assert (add.kind, add.cores, add.elements, add.macs) == (CostKind.POINTWISE, 32, 512 * 512, 0)
    assert [o.bytes for o in add.operands] == [512 * 512 * 2] * 3
    assert [o.per_core for o in add.operands] == [512 * 512 * 2 // 32] * 3
    assert add.moved() == add.needed == add.moved_per_core == 3 * 512 * 512 * 2
    assert [o.written for o in add.operands] == [False, False, True]


def test_a_product_whose_rows_are_divided() -> None:
    mm = work("superdsc_real/03_batchmatmul_512_mb32")
    assert mm.product is not None
    assert (mm.product.rows, mm.product.columns, mm.product.depth, mm.product.batch) == (512, 512, 512, 1)
    assert mm.product.splits == (1, 32, 1, 1) and mm.macs == 512**3
    # All 32 cores read the whole right operand.
    assert [o.readers for o in mm.operands] == [1, 32, 1]
    assert [o.per_core for o in mm.operands] == [16 * 512 * 2, 512 * 512 * 2, 16 * 512 * 2]
    assert mm.moved_per_core == (2 + 32) * 512 * 512 * 2


def test_a_product_whose_sum_is_divided() -> None:
    mm = work("superdsc_worked/b32k_matmul_256x512x128_mb4_out2_in4")
    assert mm.product is not None and mm.product.splits == (1, 4, 2, 4)
    assert [o.readers for o in mm.operands] == [2, 4, 1]
    # 4 x 2 tiles of the result; the 4 cores of each sum touch the same one.
    assert [o.per_core for o in mm.operands] == [64 * 128 * 2, 128 * 64 * 2, 64 * 64 * 2]


def test_padding_and_sparse_results_move_more_than_needed() -> None:
    total = work("superdsc_worked/c32p_sum_lastdim_128x200_padded")
    assert total.kind is CostKind.ROW_REDUCTION and total.rows == 128
    # 200 columns lie in 4 sticks; every sum has a stick of its own.
    assert [o.bytes for o in total.operands] == [128 * 256 * 2, 128 * 128]
    assert [o.needed for o in total.operands] == [128 * 200 * 2, 128 * 2]


def test_a_sum_across_sticks_and_a_bias() -> None:
    assert work("superdsc_worked/c32n_sum_dim0_128x256_nonstick").kind is CostKind.OUTER_REDUCTION
    bias = work("superdsc_worked/e32_add_bias_128x256_plus_256")
    assert [o.small for o in bias.operands] == [False, True, False]
    assert [o.readers for o in bias.operands] == [1, 32, 1]


def test_scratchpads_move_no_device_memory() -> None:
    restickify = work("superdsc_real/06_ReStickifyOpLx_lx")
    assert restickify.kind is CostKind.RESTICKIFY
    assert all(o.local for o in restickify.operands) and restickify.moved() == restickify.needed == 0


def test_runs_of_bytes() -> None:
    """4 rows of a core lie together in each of 4 columns of sticks: other cores' rows stand between them."""
    add = describe(read_json(DATA / "superdsc_worked/a32_add_128x256_32core.json"))
    assert {o.run for o in work_of(add).operands} == {4 * 128}
    one = describe(read_json(DATA / "superdsc_worked/a1_add_128x256_1core.json"))
    assert {o.run for o in work_of(one).operands} == {128 * 256 * 2}


def test_rows_and_a_batch_of_one_operand() -> None:
    """x[6, 64, 128] @ w[128, 256]: the batch that only x has is no row of the tile."""

    def operand(*order: str) -> Operand:
        return Operand(order, tuple({d.label: d.extent for d in dims}[o] for o in order), order[0], "SEN169_FP16", ())

    dims = (Dim("x", 6, 2), Dim("mb", 64, 4), Dim("out", 256, 4), Dim("in", 128))
    operands = (operand("in", "mb", "x"), operand("out", "in"), operand("out", "mb", "x"))
    mm = work_of(Descriptor(0, "batchmatmul", "pt", OpClass.MATMUL, dims, operands)).product
    assert mm is not None
    assert (mm.batch, mm.shared_batch, mm.rows, mm.columns, mm.depth) == (1, 6, 64, 256, 128)
    assert mm.splits == (2, 4, 4, 1) and mm.macs == 6 * 64 * 256 * 128


@pytest.mark.parametrize("file", sorted(path.name for path in (DATA / "superdsc_real").glob("0[1-8]*.json")))
def test_work_under_another_division_is_that_of_the_divided_kernel(file: str) -> None:
    """Of a real file as it is, and of the same kernel on half as many cores or on one."""
    descriptor = describe(read_json(DATA / "superdsc_real" / file))
    works = WorkByDivision(descriptor, {d.label: d.label for d in descriptor.dims})
    for part in (1, 2, 64):
        splits = {d.label: max(1, d.split // part) for d in descriptor.dims}
        divided = replace(descriptor, dims=tuple(replace(d, split=splits[d.label]) for d in descriptor.dims))
        assert without_runs(works.work(splits)) == without_runs(work_of(divided))


def without_runs(work: Work) -> Work:
    return replace(work, operands=tuple(replace(o, run=128) for o in work.operands))
