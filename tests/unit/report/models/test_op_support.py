"""The support of every operation of a small program."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.plugins import registry
from spyre_mlir.report.models.op_support import REMOVED, support_of
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

T = "tensor<4x8xf32>"


def module(body: str) -> ModuleOp:
    text = f"func.func @main(%x: {T}, %m: tensor<8x8xf32>) {{\n{body}\n  func.return\n}}"
    return parse_module(text, make_context(), "m.py")


def support(aten: str, loop: str = "") -> list[tuple[str, str]]:
    found = support_of(module(aten), module(loop))
    return [(op.overload, support) for op, support in found.items()]


RELU = f"  %{{}} = aten.relu(%x) : ({T}) -> {T}"
HOST = f'  %{{}} = spyre.loop.host "aten.relu" because "…" (%x) {{{{self = #aten.operands<1>}}}} : ({T}) -> {T}'
OTHER = f'  %{{}} = aten.call "{{}}"(%x) {{{{self = #aten.operands<1>}}}} : ({T}) -> {T}'


def test_kernels_compositions_and_what_nobody_has() -> None:
    softmax = f"  %1 = aten.softmax.int(%x) {{dim = -1}} : ({T}) -> {T}"
    view = f"  %2 = aten.t(%x) : ({T}) -> tensor<8x4xf32>"
    other = OTHER.format(3, "aten.special_bessel_j1")
    assert support("\n".join([RELU.format(0), softmax, view, other])) == [
        ("relu", "native"),
        ("softmax.int", "composed"),
        ("t", "native"),
        ("special_bessel_j1", REMOVED),
    ]
    assert REMOVED == "removed"


def test_a_lowering_of_a_plugin_makes_a_kernel() -> None:
    with registry.isolated():
        registry.register_lowering("aten.special_bessel_j1")(lambda build, self: self)
        assert support(OTHER.format(0, "aten.special_bessel_j1")) == [("special_bessel_j1", "native")]


def test_host_steps_are_found_by_operator_and_place() -> None:
    # The same operator on another line is a kernel.
    two = f"{RELU.format(0)}\n{RELU.format(1)}"
    assert support(two, HOST.format(0)) == [("relu", "host"), ("relu", "native")]
    assert support(two, f"\n{HOST.format(0)}") == [("relu", "native"), ("relu", "host")]
    assert support(two, f"\n\n{HOST.format(0)}") == [("relu", "native"), ("relu", "native")]


def test_as_many_operations_of_a_place_are_on_the_host_as_there_are_host_steps() -> None:
    place = ' loc("m.py":9:1)'
    three = "\n".join(RELU.format(n) + place for n in range(3))
    two = "\n".join(HOST.format(n) + place for n in range(2))
    assert support(three, two) == [("relu", "host"), ("relu", "host"), ("relu", "native")]


def test_host_steps_of_operators_without_a_class() -> None:
    loop = HOST.format(0).replace("aten.relu", "mine::op")
    assert support(OTHER.format(0, "mine::op"), loop) == [("mine::op", "host")]
