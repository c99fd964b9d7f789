"""Views, copies and neutral numbers of the aten level that `canonicalize` drops, and those that it must keep."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.aten import AtenOp
from tests.unit.dialects.texts import canonical

X = "tensor<4x8xf32>"


def kept(*lines: str, argument: str = X, result: str = X) -> list[str]:
    """What is left of ops that define %0, %1, …, the last of which is returned; a star if it reads the argument."""
    body = "\n".join(f"%{n} = aten.{line}" for n, line in enumerate(lines))
    text = f"func.func @main(%x: {argument}) -> {result} {{\n{body}\nfunc.return %{len(lines) - 1} : {result}\n}}"
    module = canonical(text)
    (main,) = module.ops
    (block,) = main.regions[0].blocks
    return [
        op.name.removeprefix("aten.") + "*" * (op.operands[0] is block.args[0])
        for op in block.ops
        if isinstance(op, AtenOp)
    ]


T = f"t(%x) : ({X}) -> tensor<8x4xf32>"


@pytest.mark.parametrize(
    "lines",
    [
        (f"permute(%x) {{dims = array<i64: -2, 1>}} : ({X}) -> {X}",),
        (f"view(%x) {{size = array<i64: -1, 8>}} : ({X}) -> {X}",),
        (f"slice.Tensor(%x) {{dim = 1 : i64, start = -8 : i64}} : ({X}) -> {X}",),
        (f"alias(%x) : ({X}) -> {X}",),
        (T, f"t(%0) : (tensor<8x4xf32>) -> {X}"),
        (T, f"permute(%0) {{dims = array<i64: 1, 0>}} : (tensor<8x4xf32>) -> {X}"),
        (
            f"unsqueeze(%x) {{dim = 1 : i64}} : ({X}) -> tensor<4x1x8xf32>",
            f"squeeze.dim(%0) {{dim = array<i64: 1>}} : (tensor<4x1x8xf32>) -> {X}",
        ),
        (T, "alias(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>", f"t(%1) : (tensor<8x4xf32>) -> {X}"),
    ],
)
def test_views_that_give_the_tensor_back(lines: tuple[str, ...]) -> None:
    assert kept(*lines) == []


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        ((T, f"view(%0) {{size = array<i64: 4, 8>}} : (tensor<8x4xf32>) -> {X}"), ["t*", "view"]),
        ((f'alias(%x) {{spyre.host = "asked"}} : ({X}) -> {X}',), ["alias*"]),
        ((f'alias(%x) {{spyre.host = "asked"}} : ({X}) -> {X}', f"alias(%0) : ({X}) -> {X}"), ["alias*", "alias"]),
        ((f"exp(%x) {{spyre.wide}} : ({X}) -> {X}", f"alias(%0) : ({X}) -> {X}"), ["exp*", "alias"]),
        ((f"exp(%x) {{spyre.wide}} : ({X}) -> {X}", f"alias(%0) {{spyre.wide}} : ({X}) -> {X}"), ["exp*"]),
        ((f"exp(%x) : ({X}) -> {X}", f"alias(%0) : ({X}) -> {X}"), ["exp*"]),
    ],
)
def test_what_moves_or_rounds_or_runs_on_the_host_stays(lines: tuple[str, ...], left: list[str]) -> None:
    assert kept(*lines) == left


@pytest.mark.parametrize("inner", ["{}", "{spyre.wide}"])
@pytest.mark.parametrize("outer", ["", ", spyre.wide"])
def test_a_reshape_reads_past_another_unless_that_rounds(inner: str, outer: str) -> None:
    flat = f"view(%0) {{size = array<i64: 32>{inner[1:-1] and ', '}{inner[1:-1]}}} : ({X}) -> tensor<32xf32>"
    again = f"view(%1) {{size = array<i64: 2, 16>{outer}}} : (tensor<32xf32>) -> tensor<2x16xf32>"
    left = kept(f"exp(%x) {{spyre.wide}} : ({X}) -> {X}", flat, again, result="tensor<2x16xf32>")
    rounds = inner == "{}" and bool(outer)
    assert left == ["exp*", *["view"] * (1 + rounds)]


def test_permutations_of_equal_extents_are_composed_by_place() -> None:
    cube = "tensor<2x2x2xf32>"
    turn = f"{{dims = array<i64: 1, 2, 0>}} : ({cube}) -> {cube}"
    assert kept(f"permute(%x) {turn}", f"permute(%0) {turn}", f"permute(%1) {turn}", argument=cube, result=cube) == []
    twice = kept(f"permute(%x) {turn}", f"permute(%0) {turn}", argument=cube, result=cube)
    assert twice == ["permute*"]


def test_permutations_with_extents_of_one() -> None:
    flat, turned = "tensor<1x1x8xf32>", "tensor<1x8x1xf32>"
    first = f"transpose.int(%x) {{dim0 = 0 : i64, dim1 = 1 : i64}} : ({flat}) -> {flat}"
    second = f"permute(%0) {{dims = array<i64: 1, 2, 0>}} : ({flat}) -> {turned}"
    module_text = kept(first, second, argument=flat, result=turned)
    assert module_text == ["permute*"]


@pytest.mark.parametrize(
    ("line", "element", "goes"),
    [
        ("add.Tensor(%x) {other = 0 : i64}", "i64", True),
        ("add.Scalar(%x) {other = 0 : i64, alpha = 5 : i64}", "i32", True),
        ("sub.Tensor(%x) {other = 0 : i64}", "i8", True),
        ("mul.Tensor(%x) {other = 1 : i64}", "i64", True),
        ("mul.Tensor(%x) {other = 1 : i64, spyre.host}", "i64", False),
        ("mul.Tensor(%x) {other = 0 : i64}", "i64", False),
        ("add.Tensor(%x) {other = 1 : i64}", "i64", False),
        ("add.Tensor(%x) {self = 0 : i64, alpha = 2 : i64}", "i64", False),
        ("add.Tensor(%x) {other = 0 : i64}", "f32", False),
        ("add.Tensor(%x) {other = -0.0 : f64}", "f32", False),
        ("sub.Tensor(%x) {other = 0.0 : f64}", "f32", False),
        ("mul.Tensor(%x) {other = 1.0 : f64}", "f32", False),
        ("mul.Tensor(%x) {other = 1.0 : f64}", "f16", False),
    ],
)
def test_neutral_numbers_of_integers(line: str, element: str, goes: bool) -> None:
    kind = "tensor<4xELEMENT>".replace("ELEMENT", element)
    assert (kept(f"{line} : ({kind}) -> {kind}", argument=kind, result=kind) == []) is goes


@pytest.mark.parametrize(
    ("line", "result", "goes"),
    [
        ("clone(%x)", X, True),
        ("_to_copy(%x) {dtype = f32}", X, True),
        ("cat(%x) {tensors = #aten.operands<1>}", X, True),
        ("cat(%x, %x) {tensors = #aten.operands<2>, dim = 0 : i64}", "tensor<8x8xf32>", False),
        ("_to_copy(%x) {dtype = f16}", "tensor<4x8xf16>", False),
        ("clone(%x) {spyre.host}", X, False),
    ],
)
def test_copies(line: str, result: str, goes: bool) -> None:
    operands = ", ".join([X] * line.count("%x"))
    assert (kept(f"{line} : ({operands}) -> {result}", result=result) == []) is goes


def test_an_unused_op_goes() -> None:
    assert kept(f"exp(%x) : ({X}) -> {X}", f"neg(%x) : ({X}) -> {X}") == ["neg*"]
