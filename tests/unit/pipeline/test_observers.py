"""Observers keep the modules that passes were given, and tell another observer."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.pipeline import ModulesBefore, lower
from spyre_mlir.text.render import module_text
from spyre_mlir.universe import make_context
from tests.unit.pipeline.programs import Passes, program


def test_modules_before_passes_are_kept_as_they_were() -> None:
    heard = Passes()
    taken = ModulesBefore(("decompose-aten", "convert-aten-to-spyre-loop"), heard)
    lower(program(), make_context(), until="spyre.loop", watch=taken)
    assert list(taken.modules) == ["decompose-aten", "convert-aten-to-spyre-loop"]
    assert all("aten.relu" in module_text(module) for module in taken.modules.values())
    assert heard.seen[0] == "place-inputs" and heard.seen[-1] == "schedule-host-steps" and not heard.open


def test_the_last_module_is_kept_where_a_program_is_lowered_again() -> None:
    taken = ModulesBefore(("a",))
    first, last = ModuleOp([]), program()
    for module in (first, last):
        taken.before("a", module)
    assert module_text(taken.modules["a"]) == module_text(last)
