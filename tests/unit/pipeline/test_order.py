"""The levels and the passes that lead to each: their order, and which of them run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from spyre_mlir.errors import InputError
from spyre_mlir.pipeline import (
    KTIR,
    LEVELS,
    OFF,
    QUICKER_FORMS,
    STAGES,
    check_level,
    lower,
    passes_to,
)
from spyre_mlir.plugins import registry
from spyre_mlir.universe import make_context
from tests.unit.pipeline.programs import passes_of, program

CONTEXT = make_context()
TO_LOOP = (
    "place-inputs,reuse-inputs,put-pages,put-entries,part-caches,turn-loops,fold-sinks,slice-columns,turn-heads,part-columns,take-experts,spread-experts,pad-heads,convolve-patches,shift-rows,fold-padding,join-places,order-channels,part-sums,convolve-rows,group-channels,decompose-aten,cse,convert-aten-to-spyre-loop,"
    "scale-results,split-products,update-in-place,forward-copies,join-parts,pack-weights,schedule-host-steps"
)
TO_KERNEL = (
    "join-lanes,cut-copies,part-rows,pad-rows,cut-rows,cut-columns,choose-layouts,convert-spyre-loop-to-spyre-kernel,keep-on-device,"
    "share-trips,carry-in-place,"
    "view-copies,choose-rows,order-batches,plan,materialize-plan,divide-work,inline-loops,place-lx,forward-results,stage-transfers,assign-pool"
)


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    with registry.isolated():
        yield


def test_levels_in_their_order() -> None:
    assert LEVELS == ("aten", "spyre.loop", "spyre.kernel", "superdsc")


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_is_called_by_its_name(level: str) -> None:
    assert check_level(level) == level


def test_no_other_level_is_known() -> None:
    for call in (check_level, passes_to, lambda level: lower(program(), CONTEXT, until=level)):
        with pytest.raises(InputError, match="no level is called 'linalg'") as refused:
            call("linalg")
        assert refused.value.hint == "the levels are aten, spyre.loop, spyre.kernel, superdsc"


@pytest.mark.parametrize(
    ("level", "passes"),
    [
        ("aten", ""),
        ("spyre.loop", TO_LOOP),
        ("spyre.kernel", f"{TO_LOOP},{TO_KERNEL}"),
        ("superdsc", f"{TO_LOOP},{TO_KERNEL},convert-spyre-kernel-to-superdsc"),
    ],
)
def test_the_passes_to_a_level_are_those_that_run(level: str, passes: str) -> None:
    assert passes_to(level) == passes
    assert passes_of(level) == passes


def test_each_stage_has_the_ops_of_its_level() -> None:
    assert tuple(stage.level for stage in (*STAGES, KTIR)) == (*LEVELS, "ktir")


def test_optional_passes_run_where_they_are_named() -> None:
    assert passes_of("aten", options={"outline-regions": {}}) == "take-experts,outline-regions"
    assert passes_of("aten") == ""


def test_passes_that_are_off_are_left_out() -> None:
    kept = passes_of("spyre.loop").split(",")
    kept.remove("split-products")
    assert passes_of("spyre.loop", options={"split-products": OFF}).split(",") == kept


@pytest.mark.parametrize(
    ("point", "before"),
    [
        ("aten", "place-inputs"),
        ("aten-decomposed", "convert-aten-to-spyre-loop"),
        ("spyre.loop", "join-lanes"),
        ("spyre.kernel", "view-copies"),
    ],
)
def test_passes_of_plugins_run_at_their_points(point: str, before: str) -> None:
    @registry.register_pass(point)
    class Nothing(ModulePass):
        name = "nothing-at-all"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            pass

    wanted = f"{TO_LOOP},{TO_KERNEL}".replace(before, f"nothing-at-all,{before}")
    assert passes_of("spyre.kernel") == wanted == passes_to("spyre.kernel")


def test_quicker_forms_are_passes_to_the_loop_level() -> None:
    assert set(QUICKER_FORMS) < set(passes_to("spyre.loop").split(","))


def test_an_option_that_no_pass_has_is_refused() -> None:
    with pytest.raises(InputError, match="split-products has no option width") as refused:
        lower(program(), CONTEXT, options={"split-products": {"width": 2}})
    assert refused.value.hint == "its options are enabled"
