"""Formats that nests compute in: DL16, or float32 where integers need it."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import FloatAttr, UnitAttr, f16, f32, i1, i8, i16, i32
from xdsl.ir import Attribute
from xdsl.utils.hints import isa

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.errors import LoweringError
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.transforms.loop_to_kernel.data_formats import (
    cast,
    eager_element,
    exact_in_dl16,
    forms_of,
    is_watched,
    keeps_float32,
    wrapped,
)
from spyre_mlir.transforms.loop_to_kernel.device_forms import DeviceForms
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner
from tests.unit.transforms.levels import ops
from tests.unit.transforms.loop_to_kernel.planning import functions_of, lowered, names, nest, sent, steps, tensor

DL16, FP32 = "SEN169_FP16", "IEEE_FP32"


def two(scalar: str, element: str, result: str | None = None, *, extra: str = "") -> str:
    """A nest of two arguments."""
    kind, out = f"tensor<4x64x{element}>", f"tensor<4x64x{result or element}>"
    return f"""func.func @main(%x: {kind}, %y: {kind}) -> {out} {{
      %0 = spyre.loop.nest [m = 4, n = 64] ins(%x[m, n] : {kind}, %y[m, n] : {kind}) -> [m, n] : {out} {extra} {{
      ^bb0(%a: {element}, %b: {element}):
        %q = {scalar} : {element}
        spyre.loop.yield %q : {result or element}
      }}
      func.return %0 : {out}
    }}"""


def form_of(
    scalar: str, element: str, function: str, result: str | None = None, *, hosts: bool = True, keep: bool = False
) -> str:
    op = nest(two(scalar, element, result))
    p = LayoutPlanner(keep_float32=keep)
    if hosts:
        p.hosts.update(dict.fromkeys(op.inputs, False))
    found = forms_of(p, op, function)
    assert [v.format for v in found.operands] == [found.format] * 2
    return found.format


ADD_I, ADD_F, MAX_I, LESS = "arith.addi %a, %b", "arith.addf %a, %b", "arith.maxsi %a, %b", "arith.cmpi slt, %a, %b"


@pytest.mark.parametrize(
    ("scalar", "element", "function", "result", "wanted"),
    [
        (ADD_F, "f32", "add", None, DL16),
        (ADD_I, "i8", "add", None, DL16),  # sums to 256
        ("arith.muli %a, %b", "i8", "mul", None, FP32),  # products to 16384
        (ADD_I, "i32", "add", None, FP32),
        (MAX_I, "i8", "maximum", None, DL16),
        (MAX_I, "i32", "maximum", None, FP32),
        (LESS, "i8", "lesserthan", "i1", DL16),
        (LESS, "i32", "lesserthan", "i1", FP32),
    ],
)
def test_integers_are_dl16_where_it_has_all_of_them(
    scalar: str, element: str, function: str, result: str | None, wanted: str
) -> None:
    assert form_of(scalar, element, function, result) == wanted


def test_kept_float32() -> None:
    assert form_of(ADD_F, "f32", "add", keep=True) == FP32
    assert form_of(ADD_F, "f16", "add", keep=True) == DL16
    tanh = nest(copy("f32", "f32").replace("spyre.loop.yield %a", "%q = math.tanh %a : f32\nspyre.loop.yield %q"))
    assert forms_of(LayoutPlanner(keep_float32=True), tanh, "tanh").format == DL16  # it has no other
    op = nest(two(ADD_F, "f32"))
    assert keeps_float32(LayoutPlanner(keep_float32=True), op, f16, f32)
    assert not keeps_float32(LayoutPlanner(keep_float32=True), op, f16)
    assert not keeps_float32(LayoutPlanner(), op, f32)


@pytest.mark.parametrize(
    ("element", "host", "exact"),
    [(f32, False, True), (i1, False, True), (i8, True, True), (i16, True, False), (i8, False, False)],
)
def test_exact_numbers_of_dl16(element: Attribute, host: bool, exact: bool) -> None:
    """DL16 counts to 1024. Integers that the device computes are where they were computed."""
    p = LayoutPlanner()
    value = sent(p, 4, element=element) if host else tensor(4, element=element)
    assert exact_in_dl16(p, value) == exact
    p.of(value).format = DL16
    assert exact_in_dl16(p, value)


def test_an_integer_that_is_compared_with_small_ones_is_limited() -> None:
    """The host has it: beyond 1024 it may be 1025."""
    text = two(LESS, "i32", "i1").replace("%y[m, n] : tensor<4x64xi32>)", "%c[] : tensor<i32>)")
    text = text.replace("%0 = spyre", "%c = spyre.loop.constant 9.0 : f64 : tensor<i32>\n%0 = spyre")
    for host, wanted in ((True, DL16), (False, FP32)):
        op = nest(text)
        p = LayoutPlanner()
        if host:
            p.hosts[op.inputs[0]] = False
        p.of(op.inputs[1]).constant = UnitAttr()
        found = forms_of(p, op, "lesserthan")
        assert found.format == wanted
        assert [v.saturate for v in found.operands] == [host, False]
    large = nest(text.replace("9.0", "1025.0"))
    p = LayoutPlanner()
    p.hosts[large.inputs[0]] = False
    p.of(large.inputs[1]).constant = UnitAttr()
    assert forms_of(p, large, "lesserthan").format == FP32
    both = nest(two(LESS, "i32", "i1"))
    p = LayoutPlanner()
    p.hosts.update(dict.fromkeys(both.inputs, False))
    assert forms_of(p, both, "lesserthan").format == FP32  # two of them


def test_a_choice_of_formats_converts_least() -> None:
    """Small integers in float32 already: two of two, or one of two."""
    for count, wanted in ((2, FP32), (1, DL16), (0, DL16)):
        op, p = nest(two(LESS, "i1", "i1").replace("slt", "ult")), LayoutPlanner()
        for number, value in enumerate(op.inputs):
            p.of(value).format = FP32 if number < count else DL16
        assert forms_of(p, op, "lesserthan").format == wanted


def test_a_destination_says_the_format() -> None:
    text = two(ADD_F, "f32").replace(" -> [m, n]", " into %d -> [m, n]")
    text = text.replace("%0 = spyre", "%d = spyre.loop.empty : tensor<4x64xf32>\n%0 = spyre")
    op = nest(text)
    for form in (DL16, FP32):
        p = LayoutPlanner()
        assert op.dest is not None
        p.of(op.dest).format = form
        assert forms_of(p, op, "add").format == form
    tanh = copy("f32", "f32").replace("spyre.loop.yield %a", "%q = math.tanh %a : f32\nspyre.loop.yield %q")
    tanh = tanh.replace(" -> [m, n]", " into %d -> [m, n]")
    narrow = nest(tanh.replace("%0 = spyre", "%d = spyre.loop.empty : tensor<4x64xf32>\n%0 = spyre"))
    p = LayoutPlanner()
    assert narrow.dest is not None
    p.of(narrow.dest).format = FP32
    with pytest.raises(LoweringError, match="tanh has no form on float32, in which its result is stored") as refused:
        forms_of(p, narrow, "tanh")
    assert refused.value.hint == "copy the result"


def copy(old: str, new: str, *, write: str = "m, n", shape: str = "4x64") -> str:
    return f"""func.func @main(%x: tensor<4x64x{old}>) -> tensor<{shape}x{new}> {{
      %0 = spyre.loop.nest [m = 4, n = 64] ins(%x[m, n] : tensor<4x64x{old}>) -> [{write}] : tensor<{shape}x{new}> {{
      ^bb0(%a: {old}):
        spyre.loop.yield %a : {old}
      }}
      func.return %0 : tensor<{shape}x{new}>
    }}"""


@pytest.mark.parametrize(
    ("old", "new", "keep", "made"),
    [
        ("f32", "f16", False, True),
        ("f16", "f32", False, True),
        ("f32", "f16", True, True),
        ("i32", "f32", False, True),
        ("f32", "i32", False, True),
        ("i32", "i64", False, True),
        ("f8E4M3FN", "f32", False, True),
        ("f32", "f8E4M3FN", False, True),
        ("i1", "f32", False, True),
    ],
)
def test_changes_of_type_that_are_changes_of_form(old: str, new: str, keep: bool, made: bool) -> None:
    op, p = nest(copy(old, new)), LayoutPlanner(keep_float32=keep)
    p.hosts[op.inputs[0]] = False
    assert cast(p, op) == made
    assert (op.result in p.versions) == made


def test_parts_and_turned_tensors_are_copied() -> None:
    for text in (copy("i32", "f32", write="n, m", shape="64x4"), copy("i32", "f32", shape="8x64"), copy("i32", "i32")):
        op = nest(text)
        assert not cast(LayoutPlanner(), op)


def test_forms_that_casts_make() -> None:
    def made(old: str, new: str) -> tuple[str, list[str]]:
        op, p = nest(copy(old, new)), LayoutPlanner()
        p.hosts[op.inputs[0]] = False
        assert cast(p, op)
        return p.versions[op.result].format, names(p)

    assert made("i32", "f32") == (DL16, [])
    assert made("i32", "i64")[1] == []
    assert made("i8", "i16")[1] == []
    assert made("i32", "i8") == (FP32, ["mul", "add", "floor", "mul", "sub"])
    assert made("i32", "ui8") == (FP32, ["mul", "floor", "mul", "sub"])
    assert made("f32", "f8E4M3FN")[1] == ["convert"]


def test_casts_of_integers_beyond_those_of_the_device() -> None:
    """The host converts what it has; kernels that copy or convert in any case convert the rest."""

    def made(old: str, new: str, *, host: bool = True, wide: bool = False) -> tuple[DeviceForms, LayoutPlanner]:
        op, p = nest(copy(old, new)), LayoutPlanner()
        op.wide = UnitAttr() if wide else None
        if host:
            p.hosts[op.inputs[0]] = False
        else:
            p.of(op.inputs[0]).format = FP32
            p.of(op.inputs[0]).buffers.append(p.fresh((4, 64), FP32, 1))
        assert cast(p, op)
        return p.versions[op.result], p

    for old, new, elements in (("i64", "f32", (f32,)), ("i16", "f32", ()), ("i64", "f16", ()), ("i64", "i32", (i32,))):
        assert made(old, new)[0].elements == elements
    assert made("i64", "f32", wide=True)[0].elements == ()
    assert made("i32", "i64")[0].elements == ()
    for new, function, element in (("f32", "convert", f32), ("i32", "identity", i32)):
        forms, p = made("i64", new, host=False)
        p.some(forms)
        (step,) = steps(p)
        assert (step.function, step.element) == (function, element)


@pytest.mark.parametrize(("element", "numbers"), [(i8, [1 / 256, 0.5, 256]), (i16, [1 / 65536, 0.5, 65536])])
def test_short_integers_start_anew(element: Attribute, numbers: list[float]) -> None:
    p = LayoutPlanner()
    versions = p.of(sent(p, 4, 64, element=i32))
    versions.format = FP32
    found = wrapped(p, versions, element)
    assert names(p) == ["mul", "add", "floor", "mul", "sub"]
    constants = [b.constant for step in steps(p) for b, _ in step.inputs if b.constant is not None]
    assert [c.value.data for c in constants if isa(c, FloatAttr)] == numbers
    source = p.some(versions)
    *_, last = steps(p)
    assert last.inputs[0][0] is source and last.output[0] is found.buffers[0] and found.format == FP32


def test_wrapped_integers_are_those_of_numpy() -> None:
    kind, short = "tensor<4x64xi32>", "tensor<4x64xi8>"
    module = lowered(f"%x: {kind}", [f"_to_copy(%x) {{dtype = i8}} : ({kind}) -> {short}"], short)
    x = np.arange(-128, 128).reshape(4, 64) * 77
    assert np.array_equal(run_function(module, [x])[0], x.astype(np.int8))
    assert "floor" in functions_of(module) and ops(module, KernelOp)


def test_what_eager_rounds_to() -> None:
    assert eager_element(nest(two(ADD_F, "f32")), DL16) == f32
    assert eager_element(nest(two(ADD_F, "f16")), DL16) is None
    assert eager_element(nest(two(ADD_I, "i32")), FP32) == i32
    assert eager_element(nest(two(ADD_I, "i32")), DL16) is None
    assert eager_element(nest(two(ADD_I, "i8")), FP32) is None  # these wrap in steps of their own
    op = nest(two(ADD_F, "f32"))
    op.wide = UnitAttr()
    assert eager_element(op, DL16) is None


@pytest.mark.parametrize(
    ("scalar", "element", "function", "form", "watched"),
    [
        (ADD_I, "i32", "add", FP32, True),
        (ADD_I, "i64", "add", FP32, True),
        (ADD_I, "i32", "add", DL16, False),
        (ADD_I, "i8", "add", FP32, False),
        (MAX_I, "i32", "maximum", FP32, False),
        (ADD_F, "f32", "add", FP32, False),
    ],
)
def test_kernels_that_may_leave_the_integers_of_float32(
    scalar: str, element: str, function: str, form: str, watched: bool
) -> None:
    assert is_watched(LayoutPlanner(), nest(two(scalar, element)), function, form) == watched
