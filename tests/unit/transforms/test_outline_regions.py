"""Pass `outline-regions`."""

from spyre_mlir.text.render import module_text, parse_module, verify_module
from spyre_mlir.transforms.outline_regions import OutlineRegionsPass
from spyre_mlir.universe import make_context
from tests.unit.transforms.regions.programs import calls, stacked


def test_the_text_has_a_layer_once_and_reads_back() -> None:
    module = stacked(20)
    flat = len(module_text(module))
    OutlineRegionsPass().apply(make_context(), module)
    text = module_text(module)
    assert len(calls(module)) == 20
    assert text.count("aten.tanh") == 6
    assert len(text) < flat / 4
    verify_module(parse_module(text, make_context(), "again.mlir"))


def test_a_program_with_calls_stays_as_it_is() -> None:
    module = stacked(4)
    OutlineRegionsPass().apply(make_context(), module)
    before = module_text(module)
    OutlineRegionsPass().apply(make_context(), module)
    assert module_text(module) == before
