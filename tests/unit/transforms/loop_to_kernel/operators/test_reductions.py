"""Reductions and floor division at the kernel level: which kernels, and what they compute against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f32, i32
from xdsl.utils.hints import isa

from spyre_mlir.dialects.spyre.kernel import KernelConstantOp, KernelOp
from spyre_mlir.machine.levels.run import run_function
from tests.unit.machine.modules import Array, numbers
from tests.unit.transforms.levels import ops
from tests.unit.transforms.loop_to_kernel.planning import functions_of, lowered

FOLDS = {"sum.dim_IntList": np.sum, "amax": np.max, "amin": np.min}


def reduced(function: str, shape: tuple[int, ...], dim: int, element: str = "f32", keep: bool = False) -> ModuleOp:
    kind = f"tensor<{'x'.join(map(str, shape))}x{element}>"
    kept = "x".join(str(e) for d, e in enumerate(shape) if d != dim)
    out = f"tensor<{kept}x{'i64' if element != 'f32' and function.startswith('sum') else element}>"
    line = f"{function}(%x) {{dim = array<i64: {dim}>, keepdim = false}} : ({kind}) -> {out}"
    return lowered(f"%x: {kind}", [line], out, keep=keep)


def values(shape: tuple[int, ...], sign: int) -> Array:
    return sign * (np.abs(numbers(*shape)) + 1)


def known(module: ModuleOp) -> list[float]:
    """The numbers that kernels read."""
    return [op.value.value.data for op in ops(module, KernelConstantOp) if isa(op.value, FloatAttr)]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("extent", [64, 70])
@pytest.mark.parametrize("function", FOLDS)
def test_folds(function: str, extent: int, dim: int, keep: bool) -> None:
    """All numbers below 0, or above: zeros behind them would win."""
    shape = (5, extent)
    x = values(shape, -1 if function == "amax" else 1)
    module = reduced(function, shape, dim, keep=keep)
    (found,) = run_function(module, [x])
    np.testing.assert_allclose(found, FOLDS[function](x, axis=dim), rtol=1e-6)


@pytest.mark.parametrize("function", ["sum", "max", "min"])
def test_float32_is_folded_in_whole_sticks(function: str) -> None:
    """What stands behind 70 elements, to 128, takes no part: the ends of float32, or 0."""
    overload = {"sum": "sum.dim_IntList", "max": "amax", "min": "amin"}[function]
    module = reduced(overload, (5, 70), 1, keep=True)
    fold = next(op for op in ops(module, KernelOp) if op.function_name == function)
    assert 128 in fold.space.extents.values()
    assert ("where3" in functions_of(module)) == (function != "sum")  # the host sends zeros there
    largest = float(np.finfo(np.float32).max)
    behind = {"sum": 0.0, "max": -largest, "min": largest}[function]
    assert (behind in known(module)) == (function != "sum")
    whole = reduced(overload, (5, 128), 1, keep=True)
    assert "where3" not in functions_of(whole)


def test_integers_have_the_ends_of_int64_behind_them() -> None:
    for function, behind in (("amax", -(2.0**63)), ("amin", 2.0**63 - 2.0**39)):
        module = reduced(function, (5, 70), 1, element="i32")
        assert behind in known(module)
        x = (-1 if function == "amax" else 1) * (2**24 - 1 - np.arange(350).reshape(5, 70))
        (found,) = run_function(module, [x])
        assert np.array_equal(found, FOLDS[function](x, axis=1))


def test_sums_of_integers_are_watched_and_choices_are_not() -> None:
    total = reduced("sum.dim_IntList", (5, 70), 1, element="i32")
    watched = {op.function_name for op in ops(total, KernelOp) if op.is_watched}
    assert watched == {"sum"}
    chosen = reduced("amax", (5, 70), 1, element="i32")
    assert not [op for op in ops(chosen, KernelOp) if op.is_watched]


def test_folds_say_what_eager_rounds_them_to() -> None:
    def element(module: ModuleOp, function: str) -> object:
        return next(op for op in ops(module, KernelOp) if op.function_name == function).rounds_to

    assert element(reduced("amax", (5, 70), 1, keep=True), "max") == f32
    assert element(reduced("amax", (5, 70), 1, element="i32"), "max") == i32


@pytest.mark.parametrize("columns", [70, 64])
def test_a_part_is_copied_before_it_is_folded_in_whole_sticks(columns: int) -> None:
    """70 of 140 columns: behind them stand the others."""
    kind, part = f"tensor<5x{2 * columns}xf32>", f"tensor<5x{columns}xf32>"
    module = lowered(
        f"%x: {kind}",
        [
            f"exp(%x) : ({kind}) -> {kind}",
            f"slice.Tensor(%0) {{dim = 1 : i64, end = {columns} : i64}} : ({kind}) -> {part}",
            f"sum.dim_IntList(%1) {{dim = array<i64: 1>, keepdim = false}} : ({part}) -> tensor<5xf32>",
        ],
        "tensor<5xf32>",
        keep=True,
    )
    x = numbers(5, 2 * columns)
    (found,) = run_function(module, [x])
    np.testing.assert_allclose(found, np.exp(x[:, :columns]).sum(1), rtol=1e-6)
    before = functions_of(module)[: functions_of(module).index("sum")]
    assert ("identity" in before) == ("where3" in before) == (columns == 70)


def test_folds_of_turned_tensors() -> None:
    module = lowered(
        "%x: tensor<5x70xf32>",
        [
            "exp(%x) : (tensor<5x70xf32>) -> tensor<5x70xf32>",
            "t(%0) : (tensor<5x70xf32>) -> tensor<70x5xf32>",
            "amax(%1) {dim = array<i64: 1>, keepdim = false} : (tensor<70x5xf32>) -> tensor<70xf32>",
        ],
        "tensor<70xf32>",
    )
    x = numbers(5, 70)
    (found,) = run_function(module, [x])
    np.testing.assert_allclose(found, np.exp(x).max(0), rtol=1e-6)


def test_parts_are_written_to_the_destination_of_all() -> None:
    kind = "tensor<5x64xf32>"
    line = f"cat(%x, %x) {{dim = 0 : i64}} : ({kind}, {kind}) -> tensor<10x64xf32>"
    module = lowered(f"%x: {kind}", [line], "tensor<10x64xf32>")
    outputs = {op.output for op in ops(module, KernelOp)}
    assert len(outputs) == 1
    x = numbers(5, 64)
    assert np.array_equal(run_function(module, [x])[0], np.concatenate([x, x]))


def test_a_floor_division_takes_several_kernels() -> None:
    kind = "tensor<4x64xi32>"
    given = "{self = #aten.operands<1>, other = #aten.operands<1>}"
    body = [f'call "spyre::floor_divide_integers"(%x, %y) {given} : ({kind}, {kind}) -> {kind}']
    a, b = np.arange(-128, 128).reshape(4, 64) * 999, np.arange(1, 257).reshape(4, 64) % 37 + 1
    module = lowered(f"%x: {kind}, %y: {kind}", body, kind)
    assert functions_of(module)[:2] == ["realdiv", "floor"]
    assert np.array_equal(run_function(module, [a, b])[0], a // b)
