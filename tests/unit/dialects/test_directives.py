"""What stands behind a keyword of a format must be there, be it optional to the op."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import ParseError

from spyre_mlir.text import module_text, parse_module
from spyre_mlir.universe import make_context

KERNEL = "!spyre.tensor<[64] x SEN169_FP16, order [0], stick 0, hbm>"
NEST = """func.func @f(%x: tensor<4xf32>) {{
  %r = spyre.loop.nest [m = 4] ins(%x[m] : tensor<4xf32>){into} -> [m] : tensor<4xf32>{reduce} {{
  ^bb0(%e: f32):
    spyre.loop.yield %e : f32
  }}
  func.return
}}"""


@pytest.mark.parametrize(("into", "reduce"), [("", ""), (" into %x", ""), ("", ' reduce "arith.addf"')])
def test_parts_of_a_nest_may_be_left_out_whole(into: str, reduce: str) -> None:
    text = NEST.format(into=into, reduce=reduce)
    assert f"){into} -> [m] : tensor<4xf32>{reduce} {{" in module_text(parse_module(text, make_context()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NEST.format(into=" into", reduce=""), "operand expected"),
        (NEST.format(into="", reduce=" reduce"), "string literal"),
        (NEST.format(into="", reduce=" reduce add"), "string literal"),
        (f"%b = spyre.kernel.alloc at : {KERNEL}", "attribute expected"),
    ],
)
def test_a_keyword_alone_is_refused(text: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_module(text, make_context())


@pytest.mark.parametrize("given", ["", " {b = 2 : i64, a = 1 : i64}"])
def test_arguments_keep_their_order(given: str) -> None:
    text = f'func.func @f(%x: f32) {{\n%0 = aten.call "acme::some"(){given} : () -> tensor<f32>\nfunc.return\n}}'
    module = parse_module(text, make_context())
    assert f'"acme::some"(){given} :' in module_text(module)
    generic = module_text(module, generic=True)
    assert (f"arguments ={given}}}>" in generic) == bool(given)
    assert module_text(parse_module(generic, make_context())) == module_text(module)
