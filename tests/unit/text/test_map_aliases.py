"""The text of bundles: affine maps by name, in the form the specification shows."""

from __future__ import annotations

from spyre_mlir.text.map_aliases import text_with_map_names
from spyre_mlir.text.render import module_text, parse_module, verify_module
from spyre_mlir.universe import make_context

TEXT = """\
#map_0 = affine_map<(d0)[s0] -> (s0 + 65536*d0)>
#map_1 = affine_map<(d0, d1)[s0] -> (s0 + 4096*d0 + 128*d1)>
#map_2 = affine_map<(d0) -> ((d0 floordiv 2))>
builtin.module {
  func.func @sdsc_bundle(%a: index) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %c1 step %c1 {
      %x = affine.apply #map_0(%i)[%a]
      %y = affine.apply #map_1(%i, %i)[%a]
      %z = affine.apply #map_0(%i)[%y]
      %h = affine.apply #map_2(%i)
    }
    func.return
  }
}"""


def test_equal_maps_share_a_name_and_the_text_reads_back() -> None:
    module = parse_module(TEXT, make_context())
    verify_module(module)
    assert text_with_map_names(module).rstrip() == TEXT
    again = parse_module(text_with_map_names(module), make_context())
    assert module_text(again) == module_text(module)


def test_a_module_without_maps_is_printed_as_ever() -> None:
    module = parse_module("func.func @f() { func.return }", make_context())
    assert text_with_map_names(module).rstrip() == module_text(module).rstrip()
