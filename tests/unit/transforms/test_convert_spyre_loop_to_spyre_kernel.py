"""Nests as kernels: which layouts and functions they get, what they compute, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, f32

from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.host import KernelHostOp
from spyre_mlir.dialects.spyre.kernel import (
    AllocOp,
    FromDeviceOp,
    KernelConstantOp,
    KernelOp,
    ToDeviceOp,
    device_tensor,
)
from spyre_mlir.errors import LoweringError, UnsupportedError
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.machine.levels.run import run_function
from tests.unit.machine.modules import numbers
from tests.unit.transforms.levels import ops, passed
from tests.unit.transforms.loop_to_kernel.planning import functions_of, lowered

PASS = "convert-spyre-loop-to-spyre-kernel"
X = "tensor<4x64xf32>"
COPY = "{\n^bb0(%e: f32):\nspyre.loop.yield %e : f32\n}"
MUL = "{\n^bb0(%e: f32, %g: f32):\n%p = arith.mulf %e, %g : f32\nspyre.loop.yield %p : f32\n}"


def loops(arguments: str, body: str, result: str, value: str = "%0", **options: object) -> ModuleOp:
    text = f"func.func @main({arguments}) -> {result} {{\n{body}\nfunc.return {value} : {result}\n}}"
    return passed(text, PASS, **options)  # type: ignore[arg-type]


def test_a_pointwise_nest_is_a_kernel() -> None:
    made = lowered(f"%x: {X}", [f"exp(%x) : ({X}) -> {X}"], X)
    assert [type(op) for op in next(iter(made.ops)).walk() if op.name.startswith("spyre")] == [
        ToDeviceOp, AllocOp, kernel.ComputeOp, FromDeviceOp,
    ]  # fmt: skip
    (op,) = ops(made, KernelOp)
    assert op.rounds_to == f32
    x = numbers(4, 64)
    np.testing.assert_allclose(run_function(made, [x])[0], np.exp(x), rtol=1e-6)


def test_an_argument_that_is_returned_needs_no_device() -> None:
    made = passed(f"func.func @main(%x: {X}) -> {X} {{\nfunc.return %x : {X}\n}}", PASS)
    assert not ops(made, ToDeviceOp) and not ops(made, FromDeviceOp)


@pytest.mark.parametrize(
    ("kind", "prepared"), [("parameter", True), ("buffer", True), ("constant", True), ("input", False)]
)
def test_weights_are_laid_out_ahead_of_time(kind: str, prepared: bool) -> None:
    made = lowered(f'%x: {X} {{aten.kind = "{kind}"}}', [f"exp(%x) : ({X}) -> {X}"], X)
    (sent,) = ops(made, ToDeviceOp)
    assert (sent.zero_padding is not None) == prepared


def product(m: int, k: int, n: int, keep: bool = False) -> ModuleOp:
    a, b, c = (f"tensor<{r}x{s}xf32>" for r, s in ((m, k), (k, n), (m, n)))
    exp = [f"exp(%x) : ({a}) -> {a}", f"exp(%y) : ({b}) -> {b}", f"mm(%0, %1) : ({a}, {b}) -> {c}"]
    return lowered(f"%x: {a}, %y: {b}", exp, c, keep=keep)


@pytest.mark.parametrize("k", [64, 70, 5])
def test_a_product_reads_zeros_behind_its_operands(k: int) -> None:
    """A mask for the lanes of the first operand, zeros for rows of the second."""
    made = product(4, k, 65)
    clearing = ["where3", "identity"] if k % 64 else []
    assert functions_of(made) == ["exp", "exp", *clearing, "batchmatmul"]
    matmul = ops(made, KernelOp)[-1]
    assert [t.layout.stick for t in matmul.tensors] == [1, 1, 1]
    assert [a.lane for a in matmul.accesses()] == ["k", "n", "n"]
    x, y = numbers(4, k), numbers(k, 65, seed=1)
    np.testing.assert_allclose(run_function(made, [x, y])[0], np.exp(x) @ np.exp(y), rtol=1e-5)


def test_a_product_is_in_dl16_and_says_so() -> None:
    made = product(4, 64, 64, keep=True)
    matmul = next(op for op in ops(made, KernelOp) if op.is_product)
    assert {t.format for t in matmul.tensors} == {"SEN169_FP16"} and matmul.narrowed is not None
    assert not any("narrowed" in op.properties for op in ops(product(4, 64, 64), KernelOp))


def test_columns_of_the_first_operand_change_sides() -> None:
    """The first lacks no loop of the result, the second two: they are exchanged."""
    a, b, c = "tensor<8x64xf32>", "tensor<2x64x3xf32>", "tensor<2x3x8xf32>"
    nest = f"""%0 = spyre.loop.nest [p = 2, q = 3, n = 8, k = 64] ins(%x[n, k] : {a}, %y[p, k, q] : {b})
      -> [p, q, n] : {c} reduce "arith.addf" {MUL}"""
    made = loops(f"%x: {a}, %y: {b}", nest, c)
    x, y = numbers(8, 64), numbers(2, 64, 3, seed=1)
    np.testing.assert_allclose(run_function(made, [x, y])[0], np.einsum("nk,pkq->pqn", x, y), rtol=1e-5, atol=1e-5)
    matmul = next(op for op in ops(made, KernelOp) if op.is_product)
    assert matmul.maps.data[1].names == {"n", "k"}


def test_columns_in_two_loops_of_both_are_refused() -> None:
    a, b, c = "tensor<2x3x64xf32>", "tensor<4x5x64xf32>", "tensor<2x3x4x5xf32>"
    nest = f"""%0 = spyre.loop.nest [p = 2, q = 3, r = 4, s = 5, k = 64] ins(%x[p, q, k] : {a}, %y[r, s, k] : {b})
      -> [p, q, r, s] : {c} reduce "arith.addf" {MUL}"""
    with pytest.raises(LoweringError, match="a product with column loops p, q; the hardware has one") as refused:
        loops(f"%x: {a}, %y: {b}", nest, c)
    assert refused.value.hint == "copy the second operand so that its columns are one loop"


@pytest.mark.parametrize(
    ("maps", "lacking"),
    [
        (("[0, k]", "[k, n]"), "both operands lack m"),
        (("[m, k]", "[0, n]"), "operand 1 lacks k"),
        (("[m, 0]", "[k, n]"), "operand 0 lacks k"),
    ],
)
def test_a_product_whose_maps_lack_a_loop_is_refused(maps: tuple[str, str], lacking: str) -> None:
    t = "tensor<64x64xf32>"
    nest = f"""%0 = spyre.loop.nest [m = 64, n = 64, k = 64] ins(%x{maps[0]} : {t}, %w{maps[1]} : {t})
      -> [m, n] : {t} reduce "arith.addf" {MUL}"""
    with pytest.raises(LoweringError, match=f"no product reads operands by such maps: {lacking}"):
        loops(f"%x: {t}, %w: {t}", nest, t)


def test_a_sum_over_part_of_a_dimension_is_copied_first() -> None:
    """70 of 140 columns: zeros are needed where the others stand."""
    a, b, c = "tensor<4x140xf32>", "tensor<70x64xf32>", "tensor<4x64xf32>"
    nest = f"""%0 = spyre.loop.nest [m = 4, n = 64, k = 70] ins(%x[m, k + 7] : {a}, %y[k, n] : {b})
      -> [m, n] : {c} reduce "arith.addf" {MUL}"""
    made = loops(f"%x: {a}, %y: {b}", nest, c)
    assert functions_of(made)[0] == "identity"
    x, y = numbers(4, 140), numbers(70, 64, seed=1)
    np.testing.assert_allclose(run_function(made, [x, y])[0], x[:, 7:77] @ y, rtol=1e-5, atol=1e-5)


def test_folding_a_computed_body_is_refused() -> None:
    nest = f"%0 = spyre.loop.nest [m = 4, n = 64] ins(%x[m, n] : {X}, %x[m, n] : {X}) -> [m] : tensor<4xf32>"
    nest += f' reduce "arith.maximumf" {MUL}'
    with pytest.raises(UnsupportedError, match="a nest that combines n of a computed body") as refused:
        loops(f"%x: {X}", nest, "tensor<4xf32>")
    assert refused.value.hint == "reduce one loop at a time, of a copied element"
    both = f'%0 = spyre.loop.nest [m = 4, n = 64] ins(%x[m, n] : {X}) -> [] : tensor<f32> reduce "arith.addf" {COPY}'
    with pytest.raises(UnsupportedError, match="a nest that combines m, n"):
        loops(f"%x: {X}", both, "tensor<f32>")


def test_short_integers_wrap_after_their_kernel() -> None:
    kind = "tensor<4x64xi8>"
    made = lowered(f"%x: {kind}", [f"add.Tensor(%x, %x) : ({kind}, {kind}) -> {kind}"], kind)
    assert functions_of(made) == ["add", "mul", "add", "floor", "mul", "sub"]
    x = np.arange(-128, 128).reshape(4, 64)
    assert np.array_equal(run_function(made, [x])[0], (x * 2 + 128) % 256 - 128)
    none = lowered(f"%x: {kind}", [f"maximum(%x, %x) : ({kind}, {kind}) -> {kind}"], kind)
    assert functions_of(none) == ["maximum"]


@pytest.mark.parametrize(
    ("shape", "dim", "stick"),
    [((4, 64), 0, 1), ((64, 4), 1, 0), ((64, 70), 1, 0), ((3, 70), 0, 1), ((3, 70), 1, 0), ((70, 3), 0, 1)],
)
def test_a_destination_is_one_that_all_parts_write_in_whole_sticks(
    shape: tuple[int, int], dim: int, stick: int
) -> None:
    kind = f"tensor<{shape[0]}x{shape[1]}xf32>"
    long = tuple(2 * e if d == dim else e for d, e in enumerate(shape))
    result = f"tensor<{long[0]}x{long[1]}xf32>"
    made = lowered(f"%x: {kind}", [f"cat(%x, %x) {{dim = {dim} : i64}} : ({kind}, {kind}) -> {result}"], result)
    (out,) = {op.output for op in ops(made, KernelOp)}
    assert device_tensor(out).layout.stick == stick
    x = numbers(*shape)
    assert np.array_equal(run_function(made, [x])[0], np.concatenate([x, x], dim))


def test_known_numbers_are_sent_in_the_layout_and_format_that_is_asked_for() -> None:
    def number(element: str, value: int) -> str:
        kind = f"tensor<4x64x{element}>"
        made = lowered(f"%x: {kind}", [f"add.Scalar(%x) {{other = {value} : i64}} : ({kind}) -> {kind}"], kind)
        return device_tensor(ops(made, KernelConstantOp)[0].results[0]).format

    assert [number("f32", 3), number("i32", 3)] == ["SEN169_FP16", "IEEE_FP32"]


def rows(
    table: str,
    indices: str,
    result: str,
    space: str,
    *maps: str,
    keep: bool = False,
    axis: int = 0,
    more: str = "",
    **options: object,
) -> ModuleOp:
    read = f"rows(%i[{maps[0]}] : {indices}) of axis {axis} in %t[{maps[1]}] : {table}"
    gather = f"%0 = spyre.loop.gather [{space}] {read} -> [{maps[2]}] : {result} {more}"
    return loops(f"%i: {indices}, %t: {table}", gather, result, keep_float32=keep, **options)


TABLE, AT, ROWS = "tensor<50x70xf32>", "tensor<40xi64>", "tensor<40x70xf32>"
ASKED = ("i = 40, n = 70", "i", "0, n", "i, n")


def test_a_gather_has_its_table_by_rows_and_its_indices_in_sticks() -> None:
    made = rows(TABLE, AT, ROWS, *ASKED)
    (op,) = ops(made, KernelOp)
    indices, table, out = op.tensors
    assert (indices.format, table.format, out.format) == ("SENUINT32", "SEN169_FP16", "SEN169_FP16")
    assert (table.layout.order, table.layout.stick, out.layout.stick) == ((0, 1), 1, 1)
    t, at = numbers(50, 70), np.arange(40) * 7 % 50
    assert np.array_equal(run_function(made, [at, t])[0], t[at])
    assert all(sent.from_end is None for sent in ops(made, ToDeviceOp))
    kept = ops(rows(TABLE, AT, ROWS, *ASKED, keep=True), KernelOp)[-1]
    assert kept.tensors[1].format == "IEEE_FP32"
    whole = ops(rows("tensor<50x70xi32>", AT, "tensor<40x70xi32>", *ASKED), KernelOp)[-1]
    assert whole.tensors[1].format == "IEEE_FP32"
    short = ops(rows("tensor<50x70xi8>", AT, "tensor<40x70xi8>", *ASKED), KernelOp)[-1]
    assert short.tensors[1].format == "SEN169_FP16"


def test_negative_indices_are_told_the_rows_of_the_table() -> None:
    made = rows(TABLE, AT, ROWS, *ASKED, more="from_end")
    found = [sent.rows for sent in ops(made, ToDeviceOp)]
    assert sorted(map(str, found)) == ["50", "None"]


def test_gathers_that_the_hardware_lacks_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="a gather of rows of one element") as refused:
        rows("tensor<50xf32>", AT, "tensor<40xf32>", "i = 40", "i", "0", "i")
    assert refused.value.hint == "use a table with two columns or more"
    with pytest.raises(UnsupportedError, match="a gather by a part of an index tensor") as refused:
        rows(TABLE, "tensor<41xi64>", ROWS, "i = 40, n = 70", "i + 1", "0, n", "i, n")
    assert refused.value.hint == "pass the part as an input of its own"
    three, space = "tensor<3x50x70xf32>", "p = 3, i = 40, n = 70"
    with pytest.raises(UnsupportedError, match="a gather along dimension 1 of a table"):
        rows(three, AT, "tensor<3x40x70xf32>", space, "i", "p, 0, n", "p, i, n", axis=1)


def test_columns_are_gathered_where_rows_are_in_the_lanes() -> None:
    made = rows("tensor<70x50xf32>", AT, "tensor<70x40xf32>", "n = 70, i = 40", "i", "n, 0", "n, i", axis=1)
    t, at = numbers(70, 50), np.arange(40) * 7 % 50
    assert np.array_equal(run_function(made, [at, t])[0], t[:, at])


def test_a_table_that_the_program_computes_has_its_rows_outermost() -> None:
    """So nothing lays it out again; it is in device memory, as its rows are read from everywhere."""
    body = f"""%c = spyre.loop.nest [m = 50, n = 70] ins(%t[m, n] : {TABLE}, %t[m, n] : {TABLE}) -> [m, n] : {TABLE} {{
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      spyre.loop.yield %s : f32
    }}
    %0 = spyre.loop.gather [i = 40, n = 70] rows(%i[i] : {AT}) of axis 0 in %c[0, n] : {TABLE} -> [i, n] : {ROWS}"""
    made = loops(f"%i: {AT}, %t: {TABLE}", body, ROWS)
    assert [op.function_name for op in made.walk() if isinstance(op, KernelOp)] == ["add", "identity"]
    t, at = numbers(50, 70), np.arange(40) * 7 % 50
    assert np.array_equal(run_function(made, [at, t])[0], (t + t)[at])


def test_computed_indices_of_a_gather_are_refused() -> None:
    body = f"""%c = spyre.loop.nest [i = 40] ins(%i[i] : {AT}) -> [i] : {AT} {COPY.replace("f32", "i64")}
    %0 = spyre.loop.gather [i = 40, n = 70] rows(%c[i] : {AT}) of axis 0 in %t[0, n] : {TABLE} -> [i, n] : {ROWS}"""
    with pytest.raises(UnsupportedError, match="a gather whose indices the program computes") as refused:
        loops(f"%i: {AT}, %t: {TABLE}", body, ROWS)
    assert refused.value.hint == "make them an input"


def test_a_table_beyond_reach_in_its_format_is_refused() -> None:
    """50 rows of two sticks."""
    size = 50 * 2 * 128
    rows(TABLE, AT, ROWS, *ASKED, spec=replace(SPYRE, span_bytes=size))
    with pytest.raises(UnsupportedError, match=f"rows of a table of {size} bytes") as refused:
        rows(TABLE, AT, ROWS, *ASKED, spec=replace(SPYRE, span_bytes=size - 1))
    assert refused.value.hint == "split the table in the model"


def test_host_steps_read_what_is_brought_back() -> None:
    step = f'spyre.loop.host "aten.special_bessel_j1" because "no" (%c) {{self = #aten.operands<1>}} : ({X}) -> {X}'
    body = f"%c = spyre.loop.nest [m = 4, n = 64] ins(%x[m, n] : {X}) -> [m, n] : {X} {COPY}\n%h = {step}\n"
    body += f"%0 = spyre.loop.nest [m = 4, n = 64] ins(%h[m, n] : {X}) -> [m, n] : {X} {COPY}"
    made = loops(f"%x: {X}", body, X)
    (host,) = ops(made, KernelHostOp)
    assert isinstance(host.operands[0].owner, FromDeviceOp)
    assert [sent.source for sent in ops(made, ToDeviceOp)][1] is host.results[0]
    returned = loops(f"%x: {X}", body, X, value="%h")
    assert [op.results[0].type for op in ops(returned, KernelHostOp)] == [host.results[0].type]


def test_other_levels_are_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"aten\.exp at the loop level") as refused:
        loops(f"%x: {X}", f"%0 = aten.exp(%x) : ({X}) -> {X}", X)
    assert refused.value.hint == "run convert-aten-to-spyre-loop first"


def test_failures_of_numbered_nests_are_told_at_once() -> None:
    one = f"%0 = spyre.loop.nest [m = 4, n = 64] ins(%x[m, n] : {X}) -> [] : tensor<f32>"
    one += f' reduce "arith.addf" attributes {{spyre.origin = 3 : i64}} {COPY}'
    two = one.replace("%0", "%1").replace("= 3", "= 5")
    with pytest.raises(UnsupportedError) as refused:
        loops(f"%x: {X}", one + "\n" + two, "tensor<f32>")
    assert [e.origin for e in (refused.value, *refused.value.others)] == [3, 5]


def test_what_is_rounded_after_integers_is_marked() -> None:
    """Integers become floats that start in float32; half precision for the product ends that."""
    kind, w = "tensor<4x64xi64>", "tensor<64x64xf32>"
    body = [
        f"_to_copy(%x) {{dtype = f32}} : ({kind}) -> {X}",
        f"mul.Scalar(%0) {{other = 0.5 : f64}} : ({X}) -> {X}",
        f"mm(%1, %w) : ({X}, {w}) -> {X}",
    ]
    made = lowered(f"%x: {kind}, %w: {w}", body, X)
    scaled = next(op for op in ops(made, KernelOp) if op.function_name == "mul")
    assert {t.format for t in scaled.tensors} == {"IEEE_FP32"}


@pytest.mark.parametrize(
    ("element", "keep", "form"),
    [
        ("f32", False, "SEN169_FP16"),
        ("f32", True, "IEEE_FP32"),
        ("i8", False, "SEN169_FP16"),
        ("i32", False, "IEEE_FP32"),
    ],
)
def test_a_destination_has_the_format_of_its_numbers(element: str, keep: bool, form: str) -> None:
    kind, result = f"tensor<4x64x{element}>", f"tensor<8x64x{element}>"
    line = f"cat(%x, %x) {{dim = 0 : i64}} : ({kind}, {kind}) -> {result}"
    made = lowered(f"%x: {kind}", [line], result, keep=keep)
    assert {device_tensor(op.output).format for op in ops(made, KernelOp)} == {form}


@pytest.mark.parametrize("turned", [False, True])
def test_a_destination_is_one_that_parts_are_copied_to_without_laying_out(turned: bool) -> None:
    """Rows and columns are whole sticks both: the parts decide."""
    kind, result = "tensor<64x64xf32>", "tensor<128x64xf32>"
    view = f"t(%0) : ({kind}) -> {kind}" if turned else f"clone(%0) : ({kind}) -> {kind}"
    lines = [f"exp(%x) : ({kind}) -> {kind}", view, f"cat(%1, %1) {{dim = 0 : i64}} : ({kind}, {kind}) -> {result}"]
    made = lowered(f"%x: {kind}", lines, result)
    assert functions_of(made) == ["exp", "identity", "identity"]
    out = ops(made, KernelOp)[-1].output
    assert device_tensor(out).layout.stick == (0 if turned else 1)


def test_restickifies_run_over_all_that_is_reserved() -> None:
    """Every third row of a tensor that is turned too: 100 rows are 102 then, and whole sticks of them 192."""
    kind, part = "tensor<100x100xf32>", "tensor<34x100xf32>"
    body = [
        f"exp(%x) : ({kind}) -> {kind}",
        f"t(%0) : ({kind}) -> {kind}",
        f"amax(%1) {{dim = array<i64: 0>, keepdim = false}} : ({kind}) -> tensor<100xf32>",
        f"add.Tensor(%0, %1) : ({kind}, {kind}) -> {kind}",
        f"slice.Tensor(%0) {{dim = 0 : i64, step = 3 : i64}} : ({kind}) -> {part}",
        f"neg(%4) : ({part}) -> {part}",
        f"cat(%3, %5) {{dim = 0 : i64}} : ({kind}, {part}) -> tensor<134x100xf32>",
    ]
    made = lowered(f"%x: {kind}", body, "tensor<134x100xf32>")
    moves = ops(made, kernel.RestickifyOp)
    assert moves
    for op in moves:
        assert [t.layout.extents for t in op.tensors] == [tuple(op.space.extents.values())] * 2
    x = numbers(100, 100)
    e = np.exp(x)
    np.testing.assert_allclose(run_function(made, [x])[0], np.concatenate([e + e.T, -e[::3]]), rtol=1e-6)


def test_a_floor_division_is_several_kernels() -> None:
    kind = "tensor<4x64xi32>"
    call = 'call "spyre::floor_divide_integers"(%x, %y) {self = #aten.operands<1>, other = #aten.operands<1>}'
    made = lowered(f"%x: {kind}, %y: {kind}", [f"{call} : ({kind}, {kind}) -> {kind}"], kind)
    a, b = np.arange(-128, 128).reshape(4, 64) * 999, np.arange(256).reshape(4, 64) % 37 + 1
    assert np.array_equal(run_function(made, [a, b])[0], a // b)
