"""Operands that earlier kernels left as tensors: whole, in part, put together, and in other forms, against numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from xdsl.dialects import tensor
from xdsl.dialects.builtin import f16

from spyre_mlir.dialects.spyre.kernel import AllocOp
from spyre_mlir.transforms.kernel_to_ktdp.function_builder import Code, Held, shape_of
from spyre_mlir.transforms.kernel_to_ktdp.operands import blank, converted
from spyre_mlir.transforms.kernel_to_ktdp.slices import SliceForm
from tests.unit.machine.modules import device
from tests.unit.transforms.kernel_to_ktdp.kernels import Array, kernels, lines, matrix, sparse, whole, written
from tests.unit.transforms.levels import ops, passed

T, L = matrix(4, 128), matrix(4, 128, space="lx")
HALF = matrix(2, 128)
S = sparse(4).replace("hbm", "lx")
KINDS = {"a": T, "b": HALF, "out": T, "h": HALF, "l": L, "k": L, "s": S}


def op(function: str, loops: str, *uses: str) -> str:
    said = [f"%{u} : {KINDS[u.partition('[')[0]]}" for u in uses]
    return f'spyre.kernel.compute "{function}" [{loops}] ins({", ".join(said[:-1])}) outs({said[-1]})\n'


ALLOCS = "".join(
    f"%{n} = spyre.kernel.alloc at {at} : i64 : {KINDS[n]}\n" for n, at in (("l", 0), ("k", 4096), ("s", 8192))
)
FOUR, TWO = "m = 4, n = 128", "m = 2, n = 128"
SPLIT = "m = 4 over 2, n = 128"

# Kernels, what they compute, and how often device memory is read.
CASES: dict[str, tuple[str, Callable[[Array, Array], Array], int]] = {
    "whole": (op("neg", FOUR, "a[m, n]", "l[m, n]") + op("abs", FOUR, "l[m, n]", "out[m, n]"), lambda a, b: abs(a), 1),
    "a slice on each core": (
        op("neg", SPLIT, "a[m, n]", "l[m, n]") + op("neg", SPLIT, "l[m, n]", "out[m, n]"),
        lambda a, b: a,
        1,
    ),
    "put together of parts": (
        op("neg", TWO, "b[m, n]", "l[m, n]")
        + op("abs", TWO, "b[m, n]", "l[m + 2, n]")
        + op("sub", FOUR, "l[m, n]", "a[m, n]", "out[m, n]"),
        lambda a, b: np.concatenate([-b, abs(b)]) - a,
        3,
    ),
    "a part replaced": (
        op("neg", FOUR, "a[m, n]", "l[m, n]")
        + op("abs", TWO, "b[m, n]", "l[m + 1, n]")
        + op("neg", FOUR, "l[m, n]", "out[m, n]"),
        lambda a, b: np.concatenate([a[:1], -abs(b), a[3:]]),
        2,
    ),
    "a part read": (
        op("neg", FOUR, "a[m, n]", "l[m, n]")
        + op("sub", TWO, "l[m, n]", "l[m + 2, n]", "k[m, n]")
        + op("sub", TWO, "l[m + 1, n]", "b[m, n]", "k[m + 2, n]")
        + op("neg", FOUR, "k[m, n]", "out[m, n]"),
        lambda a, b: np.concatenate([a[:2] - a[2:], a[1:3] + b]),
        2,
    ),
    "updated in place": (
        op("neg", FOUR, "a[m, n]", "l[m, n]")
        + op("add", FOUR, "l[m, n]", "l[m, n]", "l[m, n]")
        + op("neg", FOUR, "l[m, n]", "out[m, n]"),
        lambda a, b: 2 * a,
        1,
    ),
    "one value a row": (
        op("neg", FOUR, "a[m, n]", "l[m, n]")
        + op("max", FOUR, "l[m, n]", "s[m]")
        + op("sub", FOUR, "l[m, n]", "s[m]", "out[m, n]"),
        lambda a, b: -a - (-a).max(1, keepdims=True),
        1,
    ),
    "rows read in another order": (
        op("neg", FOUR, "a[m, n]", "l[m, n]")
        + op("abs", "p = 2, q = 2, n = 128", "l[p * 2 + q, n]", "k[q * 2 + p, n]")
        + op("neg", FOUR, "k[m, n]", "out[m, n]"),
        lambda a, b: -abs(a[[0, 2, 1, 3]]),
        1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("tile", [0, 64])
@pytest.mark.parametrize("name", CASES)
def test_tensors_between_kernels(name: str, tile: int) -> None:
    body, wanted, loads = CASES[name]
    a, b = whole(4, 128), whole(2, 128, seed=1)
    program = written(kernels({"a": T, "b": HALF}, ALLOCS + body, T), tile)
    if tile == 0:
        assert lines(program, "ktdp.load", "ktdp.store") == [loads, 1]
    assert np.array_equal(program.run([a, b])[0], wanted(a, b))


@pytest.mark.parametrize("tile", [0, 64 * 32])
def test_a_transposition_between_kernels(tile: int) -> None:
    a, b = device((64, 128), 1, (1, 0)), device((64, 128), 0, (0, 1))
    one, two = a.replace("hbm", "lx"), b.replace("hbm", "lx")
    body = f"""%l = spyre.kernel.alloc at 0 : i64 : {one}
    %k = spyre.kernel.alloc at 16384 : i64 : {two}
    spyre.kernel.compute "neg" [m = 64, n = 128] ins(%a[m, n] : {a}) outs(%l[m, n] : {one})
    spyre.kernel.restickify [m = 64, n = 128] ins(%l[m, n] : {one}) outs(%k[m, n] : {two})
    spyre.kernel.compute "neg" [m = 64, n = 128] ins(%k[m, n] : {two}) outs(%out[m, n] : {b})"""
    x = whole(64, 128)
    assert np.array_equal(written(kernels({"a": a}, body, b), tile).run([x])[0], x)


def convert(source: SliceForm, target: SliceForm) -> tuple[Code, tuple[int, ...]]:
    code = Code({})
    held = Held(Code({}).empty(f16, source.shape), source)
    return code, shape_of(converted(code, held, target))


def test_the_same_form_takes_no_ops() -> None:
    form = SliceForm(0, ((64, 4), (1, 64)))
    code, shape = convert(form, form)
    assert code.ops == [] and shape == (4, 64)


def test_elements_that_are_not_there_are_zeros() -> None:
    """Rows 1 and 2 of four, asked for as all four: put into zeros of the whole."""
    code, shape = convert(SliceForm(64, ((64, 2), (1, 64))), SliceForm(0, ((64, 4), (1, 64))))
    assert shape == (4, 64)
    (op,) = code.ops
    assert isinstance(op, tensor.InsertSliceOp) and list(op.static_offsets.get_values()) == [1, 0]
    assert op.dest is code.full(0.0, f16, (4, 64))


def test_a_value_begins_as_zeros() -> None:
    (alloc,) = ops(passed(f"func.func @main() {{\n%l = spyre.kernel.alloc at 0 : i64 : {L}\nfunc.return\n}}"), AllocOp)
    code, form = Code({}), SliceForm(0, ((1, 512),))
    held = blank(code, alloc.result, form)
    assert held.form is form and held.value is code.full(0.0, f16, (512,))


def test_one_element_keeps_a_dimension() -> None:
    code, shape = convert(SliceForm(0, ((1, 64),)), SliceForm(3, ((1, 1),)))
    assert shape == (1,)
    op = code.ops[0]
    assert isinstance(op, tensor.ExtractSliceOp) and list(op.static_offsets.get_values()) == [3]
