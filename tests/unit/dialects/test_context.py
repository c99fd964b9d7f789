"""The context that knows the machine, its copies, and stock contexts."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import Builtin

from spyre_mlir.dialects.context import SpyreContext
from spyre_mlir.hw.spec import SPYRE

SMALL = replace(SPYRE, cores_per_card=4)


def test_a_context_knows_its_machine() -> None:
    assert SpyreContext().spec is SPYRE
    assert SpyreContext(SMALL).spec is SMALL


def test_unknown_ops_are_accepted_only_on_demand() -> None:
    assert SpyreContext().allow_unregistered is False
    assert SpyreContext(allow_unregistered=True).allow_unregistered is True


def test_a_copy_has_all_of_the_original_and_leaves_it_alone() -> None:
    context = SpyreContext(SMALL, allow_unregistered=True)
    context.register_dialect("builtin", lambda: Builtin)
    copy = context.clone()
    assert type(copy) is SpyreContext and copy is not context
    assert copy.spec is SMALL
    assert copy.allow_unregistered is True
    assert copy.registered_dialect_names == context.registered_dialect_names
    copy.register_dialect("other", lambda: Builtin)
    assert "other" not in set(context.registered_dialect_names)
