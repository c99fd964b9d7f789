"""What may stand at each level: an illegal op and a legal op with an illegal type are refused at every one."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.errors import LoweringError
from spyre_mlir.legality import ATEN, KERNEL, KTIR, LOOP, SUPERDSC, LegalForms
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

CONTEXT = make_context()
LEVELS = {forms.level: forms for forms in (ATEN, LOOP, KERNEL, SUPERDSC, KTIR)}
T = "tensor<4x64xf32>"
D = "!spyre.tensor<[4, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>"
NEST = f"""%n = spyre.loop.nest [m = 4, n = 64] ins(%x[m, n] : {T}) -> [m, n] : {T} {{
  ^bb0(%e : f32):
    %s = arith.negf %e : f32
    spyre.loop.yield %s : f32
  }}"""
BODY = f""""spyre.loop.nest"(%x) <{{space = #spyre.space<m = 4>, maps = [#spyre.map<m>, #spyre.map<m>],
    operandSegmentSizes = array<i32: 1, 0>}}> ({{
  ^bb0(%e : GIVEN):
    "spyre.loop.yield"(%e) : (GIVEN) -> ()
  }}) : ({T}) -> {T}"""
COPY = f"""%a = spyre.kernel.to_device %x : {T} to {D}
%b = spyre.kernel.alloc : {D}
spyre.kernel.compute "neg" [m = 4, n = 64] ins(%a[m, n] : {D}) outs(%b[m, n] : {D})
%r = spyre.kernel.from_device %b : {D} to {T}"""
LOOPED = f"""%c = arith.constant 0 : index
scf.for %i = %c to %c step %c {{
  %t = spyre.kernel.tile %a dim 0 at %i * 1 : {D} to {D}
}}"""
LAUNCH = f"""%a = spyre.kernel.to_device %x : {T} to {D}
spyre.kernel.launch @sdsc_bundle(%a) : {D}"""
BUNDLE = """func.func @sdsc_bundle(%p : !sdscbundle.input_arg<index>) {
  %v = sdscbundle.input_arg_extract value from %p : !sdscbundle.input_arg<index> -> index
  %w = arith.addi %v, %v : index
  func.return
}"""


def module(body: str, behind: str = "") -> ModuleOp:
    """A function of one tensor; nothing is verified."""
    return parse_module(f"func.func @main(%x: {T}) {{\n{body}\nfunc.return\n}}\n{behind}", CONTEXT, "<text>")


@pytest.mark.parametrize(
    ("level", "body", "behind"),
    [
        ("aten", f"%0 = aten.relu(%x) : ({T}) -> {T}", ""),
        ("aten", f'%0 = aten.call "acme::some"(%x) {{self = #aten.operands<1>}} : ({T}) -> tensor<f64>', ""),
        ("spyre.loop", NEST, ""),
        ("spyre.loop", f'%0 = spyre.loop.host "aten.some" (%x) {{self = #aten.operands<1>}} : ({T}) -> {T}', ""),
        ("spyre.kernel", COPY, ""),
        ("spyre.kernel", COPY + "\n" + LOOPED, ""),
        ("superdsc", LAUNCH, BUNDLE),
        ("ktir", "%0 = tensor.empty() : tensor<4xf16>\n%1 = arith.constant 1.0 : f16", ""),
    ],
)
def test_what_a_level_is_made_of(level: str, body: str, behind: str) -> None:
    LEVELS[level].check(module(body, behind))


@pytest.mark.parametrize(
    ("level", "body", "name", "remedy"),
    [
        ("aten", NEST, "spyre.loop.nest", "try aten.call for an operator without a class"),
        ("aten", "%0 = arith.constant 1.0 : f32", "arith.constant", "try aten.call for an operator without a class"),
        ("spyre.loop", f"%0 = aten.relu(%x) : ({T}) -> {T}", "aten.relu", "-p convert-aten-to-spyre-loop first"),
        ("spyre.loop", "%0 = arith.constant 1.0 : f32", "arith.constant", "-p convert-aten-to-spyre-loop first"),
        ("spyre.kernel", NEST, "spyre.loop.nest", "-p convert-spyre-loop-to-spyre-kernel first"),
        ("spyre.kernel", LAUNCH, "spyre.kernel.launch", "-p convert-spyre-loop-to-spyre-kernel first"),
        ("superdsc", COPY, "spyre.kernel.compute", "-p convert-spyre-kernel-to-superdsc first"),
        ("superdsc", "%0 = arith.constant 1.0 : f32\n%1 = arith.negf %0 : f32", None, ""),
        ("ktir", COPY, "spyre.kernel.to_device", "-p convert-spyre-kernel-to-ktdp first"),
    ],
)
def test_an_op_of_another_level_is_refused(level: str, body: str, name: str | None, remedy: str) -> None:
    with pytest.raises(LoweringError) as refused:
        LEVELS[level].check(module(body))
    if name is None:
        assert refused.value.message == f"result 0 of arith.constant is f32, which is not legal at the level {level}"
        return
    assert refused.value.message == f"{name} is not legal at the level {level}"
    assert str(refused.value.where).startswith('"<text>":')
    assert refused.value.hint is not None and refused.value.hint.startswith("legal are builtin.module, func.*, ")
    assert remedy in refused.value.hint


@pytest.mark.parametrize(
    ("level", "body", "message", "legal"),
    [
        (
            "aten",
            '%0 = "aten.relu"(%x) : (tensor<4x64xf32>) -> memref<4x64xf32>',
            "result 0 of aten.relu is memref<4x64xf32>",
            "ranked tensors of known elements",
        ),
        (
            "aten",
            '%0 = "aten.relu"(%x) : (tensor<4x64xf32>) -> tensor<4x64xi7>',
            "result 0 of aten.relu is tensor<4x64xi7>",
            "ranked tensors of known elements",
        ),
        (
            "spyre.loop",
            BODY.replace("GIVEN", T),
            f"block argument 0 of spyre.loop.nest is {T}",
            "scalars of known types",
        ),
        (
            "spyre.loop",
            f'%0 = "spyre.loop.empty"() : () -> {D}',
            f"result 0 of spyre.loop.empty is {D}",
            "ranked tensors of known elements",
        ),
        (
            "spyre.kernel",
            f'"spyre.kernel.free"(%x) : ({T}) -> ()',
            f"operand 0 of spyre.kernel.free is {T}",
            "!spyre.tensor",
        ),
        (
            "spyre.kernel",
            "%0 = arith.constant 1.0 : f32",
            "result 0 of arith.constant is f32",
            "index",
        ),
        (
            "superdsc",
            f'"spyre.kernel.launch"(%x) <{{bundle = @sdsc_bundle}}> : ({T}) -> ()',
            f"operand 0 of spyre.kernel.launch is {T}",
            "!spyre.tensor",
        ),
        (
            "ktir",
            f'%0 = "tensor.empty"() : () -> {D}',
            f"result 0 of tensor.empty is {D}",
            "index, integers, floats, tensors, memrefs and types of ktdp",
        ),
    ],
)
def test_a_type_of_another_level_is_refused(level: str, body: str, message: str, legal: str) -> None:
    with pytest.raises(LoweringError) as refused:
        LEVELS[level].check(module(body))
    assert refused.value.message == f"{message}, which is not legal at the level {level}"
    assert str(refused.value.where).startswith('"<text>":')
    assert refused.value.hint is not None and refused.value.hint.startswith(f"legal there: {legal}; try ")


def test_arguments_of_functions_have_types_of_the_level() -> None:
    KERNEL.check(parse_module(f"func.func private @layers(%x: {D}) {{\nfunc.return\n}}", CONTEXT))  # of a region
    with pytest.raises(LoweringError, match=r"block argument 0 of func.func is !spyre.tensor.* the level spyre.loop"):
        LOOP.check(parse_module(f"func.func @main(%x: {D}) {{\nfunc.return\n}}", CONTEXT))


def test_a_level_knows_each_class_once() -> None:
    """Classes that levels know differ: an op that two families have would have the types of the first one only."""
    for forms in LEVELS.values():
        classes = [kind for family in forms.families for kind in family.classes]
        assert len(classes) == len(set(classes)), forms.level


def test_families_are_made_when_asked_for() -> None:
    made: list[int] = []

    def families() -> tuple[()]:
        made.append(1)
        return ()

    forms = LegalForms("none", families, "try nothing")
    assert made == []
    for _ in range(2):
        with pytest.raises(LoweringError, match=r"builtin.module is not legal at the level none"):
            forms.check(ModuleOp([]))
    assert made == [1]
