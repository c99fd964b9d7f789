"""Every kind of ATen op as nests, run and compared with numpy; what is copied, converted and refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, f32

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.spyre.host import LoopHostOp
from spyre_mlir.dialects.spyre.loop import EmptyOp, LoopConstantOp, LoopGatherOp, NestOp
from spyre_mlir.dialects.tensors import element_of
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.ops.table import Family
from spyre_mlir.transforms.convert_aten_to_spyre_loop import BY_ENTRY, BY_FAMILY, lowering_of
from tests.unit.machine.modules import Array, numbers
from tests.unit.transforms.levels import ops, passed

PASS = "convert-aten-to-spyre-loop"
X, XT = "tensor<4x6xf32>", "tensor<6x4xf32>"


def module(arguments: str, lines: str, result: str, **options: Any) -> ModuleOp:
    """Each line defines the next of %0, %1, …; the last is the result."""
    body = [line.strip() for line in lines.strip().splitlines()]
    text = "\n".join(f"%{n} = aten.{line}" for n, line in enumerate(body))
    source = f"func.func @main({arguments}) -> {result} {{\n{text}\nfunc.return %{len(body) - 1} : {result}\n}}"
    return passed(source, PASS, **options)


def run(made: ModuleOp, *inputs: Array) -> Array:
    (found,) = run_function(made, inputs)
    return found


def x() -> Array:
    return numbers(4, 6)


# Lines on %x, their result, how many nests they take, and what numpy makes of it.
CASES: dict[str, tuple[str, str, int, Callable[[Array], Any]]] = {
    "a view is an index": (f"t(%x) : ({X}) -> {XT}\nneg(%0) : ({XT}) -> {XT}", XT, 1, lambda a: -a.T),
    "a view that is returned is copied": (f"t(%x) : ({X}) -> {XT}", XT, 1, lambda a: a.T),
    "a view of a view that no index says": (
        (
            f"t(%x) : ({X}) -> {XT}\nview(%0) {{size = array<i64: 24>}} : ({XT}) -> tensor<24xf32>\n"
            "neg(%1) : (tensor<24xf32>) -> tensor<24xf32>"
        ),
        "tensor<24xf32>",
        1,
        lambda a: -a.T.reshape(24),
    ),
    "a cut that does not fit is copied": (
        (
            "slice.Tensor(%x) {dim = 1 : i64, end = 5 : i64} : (tensor<4x6xf32>) -> tensor<4x5xf32>\n"
            "view(%0) {size = array<i64: 5, 4>} : (tensor<4x5xf32>) -> tensor<5x4xf32>\n"
            "neg(%1) : (tensor<5x4xf32>) -> tensor<5x4xf32>"
        ),
        "tensor<5x4xf32>",
        2,
        lambda a: -a[:, :5].reshape(5, 4),
    ),
    "a number is a constant": (f"mul.Tensor(%x) {{other = 2.5 : f64}} : ({X}) -> {X}", X, 1, lambda a: a * 2.5),
    "numbers of a function": (
        f"clamp(%x) {{min = -0.5 : f64, max = 0.25 : f64}} : ({X}) -> {X}",
        X,
        1,
        lambda a: a.clip(-0.5, 0.25),
    ),
    "a choice": (
        (
            f"gt.Scalar(%x) {{other = 0.0 : f64}} : ({X}) -> tensor<4x6xi1>\n"
            f"where.self(%0, %x, %x) : (tensor<4x6xi1>, {X}, {X}) -> {X}"
        ),
        X,
        2,
        lambda a: a,
    ),
    "a fold": (
        f"sum.dim_IntList(%x) {{dim = array<i64: 1>, keepdim = false}} : ({X}) -> tensor<4xf32>",
        "tensor<4xf32>",
        2,
        lambda a: a.sum(1),
    ),
    "a fold that keeps its dimension": (
        f"amax(%x) {{dim = array<i64: 0>, keepdim = true}} : ({X}) -> tensor<1x6xf32>",
        "tensor<1x6xf32>",
        1,
        lambda a: a.max(0, keepdims=True),
    ),
    "two folds": (
        f"amax(%x) {{dim = array<i64: 0, 1>, keepdim = true}} : ({X}) -> tensor<1x1xf32>",
        "tensor<1x1xf32>",
        2,
        lambda a: a.max(keepdims=True),
    ),
    "a product": (
        f"t(%x) : ({X}) -> {XT}\nmm(%x, %0) : ({X}, {XT}) -> tensor<4x4xf32>",
        "tensor<4x4xf32>",
        1,
        lambda a: a @ a.T,
    ),
    "a linear layer": (
        f"linear(%x, %x) : ({X}, {X}) -> tensor<4x4xf32>",
        "tensor<4x4xf32>",
        1,
        lambda a: a @ a.T,
    ),
    "a clone is the value": (f"clone(%x) : ({X}) -> {X}\nneg(%0) : ({X}) -> {X}", X, 1, lambda a: -a),
    "parts side by side": (
        f"cat(%x, %x) {{dim = -1 : i64}} : ({X}, {X}) -> tensor<4x12xf32>",
        "tensor<4x12xf32>",
        2,
        lambda a: np.concatenate([a, a], 1),
    ),
    "the same type": (f"_to_copy(%x) {{dtype = f32}} : ({X}) -> {X}\nneg(%0) : ({X}) -> {X}", X, 1, lambda a: -a),
    "truth values": (f"_to_copy(%x) {{dtype = i1}} : ({X}) -> tensor<4x6xi1>", "tensor<4x6xi1>", 1, lambda a: a != 0),
    "towards zero": (
        f"_to_copy(%x) {{dtype = i32}} : ({X}) -> tensor<4x6xi32>",
        "tensor<4x6xi32>",
        6,
        lambda a: np.trunc(a),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_ops(name: str) -> None:
    lines, result, nests, wanted = CASES[name]
    made = module(f"%x: {X}", lines, result)
    assert len(ops(made, NestOp)) == nests
    np.testing.assert_allclose(run(made, x()), wanted(x()), rtol=1e-6)


def test_eight_bit_floats_end_at_their_largest() -> None:
    """448 is the largest of float8_e4m3fn."""
    made = module(
        f"%x: {X}", f"_to_copy(%x) {{dtype = f8E4M3FN}} : ({X}) -> tensor<4x6xf8E4M3FN>", "tensor<4x6xf8E4M3FN>"
    )
    a = x()
    a[0, :4] = 500, -500, 448, -448
    assert run(made, a)[0, :4].tolist() == [448, -448, 448, -448]


def test_empty_parts_are_left_out() -> None:
    made = module(f"%x: {X}, %e: tensor<0x6xf32>", f"cat(%e, %x) {{dim = 0 : i64}} : (tensor<0x6xf32>, {X}) -> {X}", X)
    assert len(ops(made, NestOp)) == 1 and len(ops(made, EmptyOp)) == 1
    assert np.array_equal(run(made, x(), np.zeros((0, 6))), x())


def test_operands_of_several_types_are_compared_as_the_first_float() -> None:
    for kinds, common in ((("i32", "f32"), "f32"), (("i8", "i32"), "i32"), (("i1", "i8"), "i8")):
        a, b = (f"tensor<4x{k}>" for k in kinds)
        made = module(f"%x: {a}, %y: {b}", f"lt.Tensor(%x, %y) : ({a}, {b}) -> tensor<4xi1>", "tensor<4xi1>")
        *_, last = ops(made, NestOp)
        assert {str(element_of(v)) for v in last.inputs} == {common}


@pytest.mark.parametrize(("function", "wanted"), [("add.Tensor", np.logical_or), ("mul.Tensor", np.logical_and)])
def test_arithmetic_of_truth_values(function: str, wanted: Callable[[Array, Array], Array]) -> None:
    kind = "tensor<4xi1>"
    made = module(f"%x: {kind}, %y: {kind}", f"{function}(%x, %y) : ({kind}, {kind}) -> {kind}", kind)
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    assert np.array_equal(run(made, a, b), wanted(a, b))


def test_other_arithmetic_of_truth_values_is_refused() -> None:
    kind = "tensor<4xi1>"
    with pytest.raises(UnsupportedError, match=r"aten.abs on truth values alone") as refused:
        module(f"%x: {kind}", f"abs(%x) : ({kind}) -> {kind}", kind)
    assert refused.value.hint == "convert them to numbers first"


def test_rows_of_a_table() -> None:
    kind = "tensor<5x8xf32>"
    made = module(
        f"%x: {kind}, %i: tensor<2x3xi64>",
        f"embedding(%x, %i) : ({kind}, tensor<2x3xi64>) -> tensor<2x3x8xf32>",
        "tensor<2x3x8xf32>",
    )
    assert len(ops(made, LoopGatherOp)) == 1
    table, at = numbers(5, 8), np.array([[4, 0, 1], [2, 2, 3]])
    assert np.array_equal(run(made, table, at), table[at])


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_entries_of_any_dimension(dim: int) -> None:
    shape = [5, 8]
    shape[dim] = 3
    result = f"tensor<{shape[0]}x{shape[1]}xf32>"
    made = module(
        "%x: tensor<5x8xf32>, %i: tensor<3xi64>",
        f"index_select(%x, %i) {{dim = {dim} : i64}} : (tensor<5x8xf32>, tensor<3xi64>) -> {result}",
        result,
    )
    assert bool(ops(made, LoopGatherOp)) == (dim == 0)
    table, at = numbers(5, 8), np.array([4, 0, 2])
    np.testing.assert_allclose(run(made, table, at), np.take(table, at, dim))


def test_known_numbers() -> None:
    made = module(f"%x: {X}", f"full() {{size = array<i64: 4, 6>, fill_value = 2.5 : f64}} : () -> {X}", X)
    assert len(ops(made, LoopConstantOp)) == 1 and np.array_equal(run(made, x()), np.full((4, 6), 2.5))


def test_integers_that_are_returned_are_integers_again() -> None:
    kind = "tensor<4x6xi32>"
    made = module(f"%x: {kind}", f"t(%x) : ({kind}) -> tensor<6x4xi32>", "tensor<6x4xi32>")
    a = np.arange(24).reshape(4, 6)
    assert np.array_equal(run(made, a), a.T)


def test_host_steps_take_whole_tensors() -> None:
    made = module(
        f"%x: {X}",
        f"t(%x) : ({X}) -> {XT}\n"
        f'call "aten.special_bessel_j1"(%0) {{self = #aten.operands<1>}} host because "no" : ({XT}) -> {XT}\n'
        f"neg(%1) : ({XT}) -> {XT}",
        XT,
    )
    (step,) = ops(made, LoopHostOp)
    copied, _ = ops(made, NestOp)
    assert step.operands[0] is copied.result and step.callee.data == "aten.special_bessel_j1"


def rows_of(spec: SpyreSpec, call: str = "embedding(%x, %i)", more: str = "") -> ModuleOp:
    kinds = "tensor<4000x70xf32>", "tensor<3xi64>"
    line = f"{call} {more} : ({kinds[0]}, {kinds[1]}) -> tensor<3x70xf32>"
    return module(f"%x: {kinds[0]}, %i: {kinds[1]}", line, "tensor<3x70xf32>", spec=spec)


@pytest.mark.parametrize(("call", "more"), [("embedding(%x, %i)", ""), ("index_select(%x, %i)", "{dim = 0 : i64}")])
def test_rows_of_a_table_beyond_reach_are_chosen_by_the_host(call: str, more: str) -> None:
    size = 4000 * 2 * 128
    assert len(ops(rows_of(replace(SPYRE, span_bytes=size), call, more), LoopGatherOp)) == 1
    far = rows_of(replace(SPYRE, span_bytes=size - 1), call, more)
    (step,) = ops(far, LoopHostOp)
    assert step.reason is not None and step.reason.data.startswith(f"rows of a table of {size} bytes")


def test_what_is_not_rounded_is_marked() -> None:
    """All nests of a wide op, and those of others that do not lead to their result."""

    def marks(mark: str) -> list[bool]:
        line = f"_to_copy(%x) {{dtype = i32}}{mark} : ({X}) -> tensor<4x6xi32>"
        made = ops(module(f"%x: {X}", line, "tensor<4x6xi32>"), NestOp)
        return [op.wide is not None for op in made if element_of(op.result) == f32]

    assert marks("") == [True] * 4 and marks(" wide") == [True] * 4
    neg = f"neg(%x) wide : ({X}) -> {X}"
    assert [op.wide is not None for op in ops(module(f"%x: {X}", neg, X), NestOp)] == [True]
    plain = module(
        f"%x: {X}",
        f"neg(%x) : ({X}) -> {X}\ncat(%0, %x) {{dim = 0 : i64}} : ({X}, {X}) -> tensor<8x6xf32>",
        "tensor<8x6xf32>",
    )
    assert not any(op.wide is not None for op in ops(plain, NestOp))


def test_lowerings_are_found_by_entry_and_by_family() -> None:
    text = f"""func.func @main(%x: {X}) {{
      %0 = aten.clone(%x) : ({X}) -> {X}
      %1 = aten.exp(%x) : ({X}) -> {X}
      %2 = aten.call "aten.special_bessel_j1"(%x) {{self = #aten.operands<1>}} : ({X}) -> {X}
      %3 = aten.softmax.int(%x) {{dim = -1 : i64}} : ({X}) -> {X}
      func.return
    }}"""
    clone, exp, bessel, softmax = (lowering_of(op) for op in ops(passed(text), AtenOp))
    assert isinstance(clone, tuple) and clone[0] is BY_ENTRY["clone"]
    assert isinstance(exp, tuple) and exp[0] is BY_FAMILY[Family.POINTWISE]
    assert exp[1] is not None and exp[1].name == "exp"
    assert bessel is None and softmax is None
    assert lowering_of(next(iter(passed(text).ops))) is None


def test_the_copy_of_a_returned_view_has_the_place_of_the_view() -> None:
    text = f"""
        func.func @main(%x: {X}) -> ({X}, {XT}) {{
          %0 = aten.neg(%x) : ({X}) -> {X} loc("model.py":3:0)
          %1 = aten.t(%0) : ({X}) -> {XT} loc("model.py":4:0)
          func.return %0, %1 : {X}, {XT}
        }}"""
    assert [str(nest.location) for nest in ops(passed(text, PASS), NestOp)] == [
        'loc("model.py":3:0)',
        'loc("model.py":4:0)',
    ]
