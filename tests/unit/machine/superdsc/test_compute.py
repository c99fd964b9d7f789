"""Descriptors that no copied file has: batches, scalars, means, scratchpads, shortfalls; addresses by hand."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.model.descriptor import Constant, Descriptor, Dim, OpClass, Operand
from spyre_mlir.errors import MachineFault, UnsupportedError
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.superdsc.launch_plans import LaunchPlans
from spyre_mlir.machine.superdsc.run import execute
from spyre_mlir.machine.superdsc.work import KeptMatrix

RNG = np.random.default_rng(11)
DL16 = "SEN169_FP16"
A, B, C = 0, 1 << 20, 1 << 21


def memory_of(size: int = 1 << 20) -> ExactMemory:
    memory = ExactMemory()
    for name, base in (("a", A), ("b", B), ("c", C)):
        memory.add_region(name, base, size)
    return memory


def rows(base: int, shape: tuple[int, int]) -> np.ndarray:
    """Addresses of a (rows, columns) tensor laid out [columns // 64, rows, 64]."""
    row, column = np.indices(shape)
    return base + (column // 64 * shape[0] + row) * 128 + column % 64 * 2


def test_batched_matmul_with_a_shared_right_side() -> None:
    """(3, 4, 64) by (64, 128): the right side lacks the batch dim; left device order [x, k, mb] inner to outer."""
    dims = (Dim("x", 3), Dim("mb", 4, 2), Dim("out", 128, 2), Dim("in", 64))
    left = Operand(("x", "in", "mb"), (3, 64, 4), "in", DL16, tuple(str(A + c % 2 * 2 * 3 * 128) for c in range(4)))
    right = Operand(("in", "out"), (64, 128), "out", DL16, tuple(str(B + c // 2 * 64 * 128) for c in range(4)))
    starts = tuple(str(C + c % 2 * 2 * 3 * 2 * 128 + c // 2 * 3 * 128) for c in range(4))
    result = Operand(("x", "out", "mb"), (3, 128, 4), "out", DL16, starts)
    memory = memory_of()
    a, b = RNG.standard_normal((3, 4, 64)), RNG.standard_normal((64, 128))
    x, m, k = np.indices(a.shape)
    memory.store(A + (m * 3 + x) * 128 + k * 2, a, DL16)
    memory.store(rows(B, b.shape), b, DL16)
    execute(Descriptor(0, "batchmatmul", "pt", OpClass.MATMUL, dims, (left, right, result)), memory)
    x, m, n = np.indices((3, 4, 128))
    found, written = memory.load(C + ((m * 2 + n // 64) * 3 + x) * 128 + n % 64 * 2, DL16)
    assert written.all()
    np.testing.assert_allclose(found, a @ b, rtol=1e-12, atol=1e-12)


def product() -> Descriptor:
    """(4, 128) by (128, 64), both with two sticks along what is summed, so that numpy needs copies."""
    dims = (Dim("mb", 4), Dim("out", 64), Dim("in", 128))
    left, right, result = (
        Operand(("mb", "in"), (4, 128), "in", DL16, (str(A),)),
        Operand(("out", "in"), (64, 128), "in", DL16, (str(B),)),
        Operand(("mb", "out"), (4, 64), "out", DL16, (str(C),)),
    )
    return Descriptor(0, "batchmatmul", "pt", OpClass.MATMUL, dims, (left, right, result))


def test_the_third_copy_of_a_weight_is_kept() -> None:
    """Shared contents are copied before a write, here and by whoever shares them."""
    view, plans, memory = product(), LaunchPlans(), memory_of()
    a, b = RNG.standard_normal((4, 128)), RNG.standard_normal((64, 128))
    memory.store(rows(A, a.shape), a, DL16)
    memory.store(rows(B, b.shape), b, DL16)

    def run() -> np.ndarray:
        execute(view, memory, plans=plans)
        return memory.load(rows(C, (4, 64)), DL16)[0]

    def kept() -> dict[int, KeptMatrix]:
        plan = plans.known(view, memory, None)
        assert plan is not None and plan.work is not None
        return plan.work.matrices

    np.testing.assert_allclose(run(), a @ b.T, rtol=1e-12, atol=1e-12)
    assert not kept()
    lent = memory.locate(B, B + 1).lend()
    for _ in range(3):
        assert not kept()
        np.testing.assert_allclose(run(), a @ b.T, rtol=1e-12, atol=1e-12)
    first = kept()[1].matrix
    np.testing.assert_array_equal(first, b.T[None])
    memory.store(rows(A, a.shape), 2 * a, DL16)
    np.testing.assert_allclose(run(), 2 * a @ b.T, rtol=1e-12, atol=1e-12)
    assert set(kept()) == {1} and kept()[1].matrix is first and not first.flags.writeable
    memory.store(rows(B, b.shape), b + 1, DL16)
    np.testing.assert_allclose(run(), 2 * a @ (b + 1).T, rtol=1e-12, atol=1e-12)
    memory.locate(B, B + 1).share(*lent)
    np.testing.assert_allclose(run(), 2 * a @ b.T, rtol=1e-12, atol=1e-12)
    other = memory_of()
    other.store(rows(B, b.shape), b - 1, DL16)
    memory.locate(B, B + 1).share(*other.locate(B, B + 1).lend())
    np.testing.assert_allclose(run(), 2 * a @ (b - 1).T, rtol=1e-12, atol=1e-12)


def test_a_scalar_operand_is_one_lane() -> None:
    dims = (Dim("mb", 4, 2), Dim("out", 128))
    wide = Operand(("mb", "out"), (4, 128), "out", DL16, (str(A), str(A + 256)))
    scalar = Operand((), (), None, DL16, (str(B), str(B)))
    result = Operand(("mb", "out"), (4, 128), "out", DL16, (str(C), str(C + 256)))
    memory = memory_of()
    a = RNG.standard_normal((4, 128))
    memory.store(rows(A, a.shape), a, DL16)
    memory.store(np.asarray([B]), [3.0], DL16)
    execute(Descriptor(0, "mul", "sfp", OpClass.POINTWISE, dims, (wide, scalar, result)), memory)
    assert np.array_equal(memory.load(rows(C, a.shape), DL16)[0], 3.0 * a)


def test_a_sparse_column_stretches_over_lanes() -> None:
    """(4, 128) minus a sparse (4,): one lane a row."""
    dims = (Dim("mb", 4, 2), Dim("out", 128))
    wide = Operand(("mb", "out"), (4, 128), "out", DL16, (str(A), str(A + 256)))
    column = Operand(("mb",), (4,), None, DL16, (str(B), str(B + 256)))
    result = Operand(("mb", "out"), (4, 128), "out", DL16, (str(C), str(C + 256)))
    memory = memory_of()
    a, b = RNG.standard_normal((4, 128)), RNG.standard_normal(4)
    memory.store(rows(A, a.shape), a, DL16)
    memory.store(B + 128 * np.arange(4), b, DL16)
    execute(Descriptor(0, "sub", "sfp", OpClass.POINTWISE, dims, (wide, column, result)), memory)
    assert np.array_equal(memory.load(rows(C, a.shape), DL16)[0], a - b[:, None])


@pytest.mark.parametrize("op_func", ["mean", "max", "min", "prod"])
def test_reductions_over_cores_with_a_mask(op_func: str) -> None:
    """(4, 100) padded to 128, the stick dim over two cores that share the output."""
    fill = {"mean": 0, "max": 0xDE00, "min": 0x5E00, "prod": 0x3E00}[op_func]
    constants = (Constant("samv-maskvalue", DL16, fill), Constant("scaling_factor", DL16, 0x2600))
    dims = (Dim("mb", 4), Dim("out", 128, 2, valid=100))
    wide = Operand(("mb", "out"), (4, 128), "out", DL16, (str(A), str(A + 4 * 128)))
    result = Operand(("mb",), (4,), None, DL16, (str(C), str(C)))
    memory = memory_of()
    a = RNG.standard_normal((4, 100))
    memory.store(rows(A, a.shape), a, DL16)
    view = Descriptor(0, op_func, "sfp", OpClass.REDUCTION, dims, (wide, result), constants, mask_constant=0)
    execute(view, memory)
    # 0x2600 is exponent 19 - 31 = -12.
    expected = {"mean": a.sum(1) * 2.0**-12, "max": a.max(1), "min": a.min(1), "prod": a.prod(1)}[op_func]
    np.testing.assert_allclose(memory.load(C + 128 * np.arange(4), DL16)[0], expected, rtol=1e-12)


@pytest.mark.parametrize(("op_func", "fill", "value"), [("max", 0xDE00, -3e38), ("min", 0x5E00, 3e38)])
def test_numbers_beyond_the_mask_are_smaller_than_no_number_in_exact_numerics(
    op_func: str, fill: int, value: float
) -> None:
    """A row of which all is masked by the model, as attention has it for padding tokens."""
    dims = (Dim("mb", 4), Dim("out", 128, valid=100))
    wide = Operand(("mb", "out"), (4, 128), "out", DL16, (str(A),))
    result = Operand(("mb",), (4,), None, DL16, (str(C),))
    constants = (Constant("samv-maskvalue", DL16, fill),)
    memory = memory_of()
    memory.store(rows(A, (4, 100)), np.full((4, 100), value), DL16)
    execute(Descriptor(0, op_func, "sfp", OpClass.REDUCTION, dims, (wide, result), constants, mask_constant=0), memory)
    assert np.array_equal(memory.load(C + 128 * np.arange(4), DL16)[0], np.full(4, value))


def test_each_scratchpad_holds_its_own_rows() -> None:
    """HBM to LX and back through two operations; a bias copy sits in every scratchpad."""
    dims = (Dim("mb", 8, 4), Dim("out", 64))
    outside = Operand(("mb", "out"), (8, 64), "out", DL16, tuple(str(A + 256 * c) for c in range(4)))
    inside = Operand(("mb", "out"), (2, 64), "out", DL16, ("512",) * 4, component="lx")
    bias_out = Operand(("out",), (64,), "out", DL16, (str(B),) * 4)
    bias_in = Operand(("out",), (64,), "out", DL16, ("1024",) * 4, component="lx")
    back = Operand(("mb", "out"), (8, 64), "out", DL16, tuple(str(C + 256 * c) for c in range(4)))
    memory = memory_of()
    a, b = RNG.standard_normal((8, 64)), RNG.standard_normal(64)
    memory.store(rows(A, a.shape), a, DL16)
    memory.store(B + 2 * np.arange(64), b, DL16)
    execute(Descriptor(0, "add", "sfp", OpClass.POINTWISE, dims, (outside, bias_out, inside)), memory)
    for core in range(4):
        found = memory.load(memory.scratchpad_address(core, 512) + 2 * np.arange(128), DL16)[0]
        np.testing.assert_allclose(found.reshape(2, 64), (a + b)[2 * core : 2 * core + 2])
        memory.store(memory.scratchpad_address(core, 1024) + 2 * np.arange(64), b * core, DL16)
    execute(Descriptor(1, "mul", "sfp", OpClass.POINTWISE, dims, (inside, bias_in, back)), memory)
    expected = (a + b) * (b * np.arange(4)[:, None]).repeat(2, axis=0)
    np.testing.assert_allclose(memory.load(rows(C, a.shape), DL16)[0], expected)


def test_a_split_reduction_into_scratchpads_is_refused() -> None:
    dims = (Dim("mb", 2), Dim("out", 128, 2))
    wide = Operand(("mb", "out"), (2, 128), "out", DL16, (str(A), str(A + 256)))
    result = Operand(("mb",), (2,), None, DL16, ("0", "0"), component="lx")
    memory = memory_of()
    memory.store(rows(A, (2, 128)), np.ones((2, 128)), DL16)
    with pytest.raises(UnsupportedError, match="which core holds it"):
        execute(Descriptor(0, "sum", "sfp", OpClass.REDUCTION, dims, (wide, result)), memory)


def test_a_restickify_of_a_buffer_that_falls_short() -> None:
    """(100, 64): N is padded to 128 rows, the input buffer has 100, so rows 100 to 127 are not there."""
    dims = (Dim("mb", 128), Dim("out", 64))
    short = Operand(("mb", "out"), (100, 64), "out", DL16, (str(A),))
    result = Operand(("out", "mb"), (64, 128), "mb", DL16, (str(C),))
    memory = ExactMemory()
    memory.add_region("a", A, 100 * 128)
    memory.add_region("c", C, 2 * 64 * 128)
    a = RNG.standard_normal((100, 64))
    memory.store(rows(A, a.shape), a, DL16)
    execute(Descriptor(0, "ReStickifyOpHBM", "sfp", OpClass.RESTICKIFY, dims, (short, result)), memory)
    found, written = memory.load(rows(C, (64, 128)), DL16)
    assert np.array_equal(found[:, :100], a.T)
    assert written[:, :100].all()
    assert not written[:, 100:].any()


def test_float32_halves_are_written_and_checked() -> None:
    dims = (Dim("out", 32),)
    operands = tuple(Operand(("out",), (32,), "out", "IEEE_FP32", (str(base),)) for base in (A, C))
    memory = memory_of()
    memory.store(A + 4 * np.arange(32), np.arange(32) / 3, "IEEE_FP32")
    execute(Descriptor(0, "neg", "sfp", OpClass.POINTWISE, dims, operands), memory)
    assert memory.load(C + 4 * np.arange(32), "IEEE_FP32")[0].tolist() == (-np.arange(32) / 3).tolist()


def test_a_mask_counts_from_the_whole_tensor_on_every_core() -> None:
    """Rows and sticks over 2 x 2 cores; one core's data lies elsewhere, so the cores run one by one."""
    dims = (Dim("mb", 4, 2), Dim("out", 128, 2, valid=100))
    moved = B + 512
    wide = Operand(("mb", "out"), (4, 128), "out", DL16, (str(A), str(A + 256), str(A + 512), str(moved)))
    result = Operand(("mb",), (4,), None, DL16, (str(C), str(C + 256), str(C), str(C + 256)))
    memory = memory_of()
    a = RNG.standard_normal((4, 100))
    memory.store(rows(A, (4, 100))[:, :64], a[:, :64], DL16)
    memory.store(rows(A, (4, 100))[:2, 64:], a[:2, 64:], DL16)
    memory.store(moved + 128 * np.arange(2)[:, None] + 2 * np.arange(36), a[2:, 64:], DL16)
    fill = (Constant("samv-maskvalue", DL16, 0),)
    execute(Descriptor(0, "sum", "sfp", OpClass.REDUCTION, dims, (wide, result), fill, mask_constant=0), memory)
    np.testing.assert_allclose(memory.load(C + 128 * np.arange(4), DL16)[0], a.sum(1), rtol=1e-12)


def test_a_regular_but_too_small_step_is_a_double_write() -> None:
    """Four rows a core, and the second core starts two rows further."""
    dims = (Dim("mb", 8, 2), Dim("out", 64))
    wide = Operand(("mb", "out"), (8, 64), "out", DL16, (str(A), str(A + 512)))
    result = Operand(("mb", "out"), (8, 64), "out", DL16, (str(C), str(C + 256)))
    memory = memory_of()
    memory.store(rows(A, (8, 64)), np.ones((8, 64)), DL16)
    with pytest.raises(MachineFault, match="double-write: cores 0 and 1 both write 128 elements"):
        execute(Descriptor(0, "neg", "sfp", OpClass.POINTWISE, dims, (wide, result)), memory)


@pytest.mark.parametrize("rows_of", [1, 3])
def test_widening_and_narrowing_permute_as_published(rows_of: int) -> None:
    """Column 64p + 8g + 4h + e of a DL16 row is found in FP32 stick 2p + h, lane 4g + e; narrowing undoes it."""
    dims = (Dim("mb", rows_of), Dim("out", 128))
    narrow = Operand(("mb", "out"), (rows_of, 128), "out", DL16, (str(A),))
    wide = Operand(("mb", "out"), (rows_of, 128), "out", "IEEE_FP32", (str(B),))
    again = Operand(("mb", "out"), (rows_of, 128), "out", DL16, (str(C),))
    memory = memory_of()
    a = RNG.standard_normal((rows_of, 128))
    memory.store(rows(A, a.shape), a, DL16)
    execute(Descriptor(0, "dl16tofp32", "sfp", OpClass.POINTWISE, dims, (narrow, wide)), memory)
    for row in range(rows_of):
        for column in range(128):
            p, g, h, e = column // 64, column % 64 // 8, column % 8 // 4, column % 4
            address = B + ((2 * p + h) * rows_of + row) * 128 + 4 * (4 * g + e)
            assert memory.load(np.asarray([address]), "IEEE_FP32")[0].tolist() == [a[row, column]]
    execute(Descriptor(1, "fp32todl16", "sfp", OpClass.POINTWISE, dims, (wide, again)), memory)
    assert np.array_equal(memory.load(rows(C, a.shape), DL16)[0], a)


def test_narrowing_of_a_standard_row_permutes_as_published() -> None:
    """Column 64t + 32h + 4g + e of an FP32 row is found in DL16 stick t, lane 8g + 4h + e."""
    dims = (Dim("out", 64),)
    wide = Operand(("out",), (64,), "out", "IEEE_FP32", (str(A),))
    narrow = Operand(("out",), (64,), "out", DL16, (str(B),))
    memory = memory_of()
    memory.store(A + 4 * np.arange(64), np.arange(64), "IEEE_FP32")
    execute(Descriptor(0, "fp32todl16", "sfp", OpClass.POINTWISE, dims, (wide, narrow)), memory)
    found = memory.load(B + 2 * np.arange(64), DL16)[0].tolist()
    for column in range(64):
        h, g, e = column // 32, column % 32 // 4, column % 4
        assert found[8 * g + 4 * h + e] == column
