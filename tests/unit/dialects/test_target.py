"""The card that a module names: text, lookup, and what a context adds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ParseError

from spyre_mlir.dialects.target import TARGET, TargetAttr, in_module_for, module_like, set_target, spec_at, spec_of
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.universe import make_context

LARGE = replace(SPYRE, cores_per_card=64, lx_bytes=4_194_304)
NAMED = "builtin.module attributes {spyre.target = #spyre.target<cores_per_card = 64, lx_bytes = 4194304>} {\n}"


def test_a_target_is_said_by_what_differs_and_read_back() -> None:
    module = ModuleOp([])
    set_target(module, LARGE)
    assert module_text(module) == NAMED
    assert spec_at(parse_module(NAMED, make_context())) == LARGE


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("<cores = 64>", "a card has no number cores; it has cores_per_card, lx_bytes"),
        ("<cores_per_card = 0>", "cores_per_card must be positive, got 0"),
        ("<lx_bytes = 1>", "lx_usable_bytes 1589376 exceeds lx_bytes 1"),
    ],
)
def test_numbers_that_no_card_has_are_refused(given: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        parse_module(f"builtin.module attributes {{spyre.target = #spyre.target{given}}} {{}}", make_context())


def test_the_standard_card_goes_without_saying() -> None:
    module = ModuleOp([], {TARGET: TargetAttr(LARGE)})
    set_target(module, SPYRE)
    assert module.attributes == {}
    assert spec_at(module) == SPYRE


def test_the_innermost_module_that_names_a_card_decides() -> None:
    inner, plain = ModuleOp([], {TARGET: TargetAttr(LARGE)}), ModuleOp([])
    small = replace(SPYRE, cores_per_card=2)
    ModuleOp([inner, plain], {TARGET: TargetAttr(small)})
    assert spec_at(inner) == LARGE
    assert spec_at(plain) == small


def test_a_pass_takes_the_module_s_card_before_the_context_s() -> None:
    module = ModuleOp([], {TARGET: TargetAttr(LARGE)})
    assert spec_of(make_context(replace(SPYRE, cores_per_card=2)), module) == LARGE


def test_a_pass_leaves_the_context_s_card_in_the_module() -> None:
    module = ModuleOp([])
    assert spec_of(make_context(LARGE), module) == LARGE
    assert spec_at(module) == LARGE
    for context in (make_context(), Context()):
        untouched = ModuleOp([])
        assert spec_of(context, untouched) == SPYRE
        assert untouched.attributes == {}


def test_modules_of_parts_are_for_the_same_card() -> None:
    whole = ModuleOp([], {TARGET: TargetAttr(LARGE)})
    part = ModuleOp([])
    assert spec_at(module_like(whole, [part])) == LARGE
    assert spec_at(part) == LARGE


def test_a_detached_op_stands_in_a_module_for_a_while() -> None:
    op = ModuleOp([])
    with in_module_for(LARGE, op):
        assert spec_at(op) == LARGE
    assert op.parent_op() is None
