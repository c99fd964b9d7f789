"""The op table itself: names, completeness, declarations that must be refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

from spyre_mlir.errors import ConstraintError
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.annotations import Lanes
from spyre_mlir.ops.hardware_functions import FUNCTIONS, function_of
from spyre_mlir.ops.parameters import ArgKind
from spyre_mlir.ops.table import Family, OpEntry, Table, require

ENTRIES = list(ATEN)
# What compositions alone call: torch has no operator of the name to hold samples against.
FOR_COMPOSITIONS = {"resample", "floor_divide_integers", "add_words", "scale_and_shift"}
# Operators that other packages define, with tests of their own.
OF_PACKAGES = {"expert_mm", "grouped_mm", "paged_attn_compute", "paged_attn_compute_with_sinks", "paged_attn_store"}
# Samples are drawn in float32: what takes 8-bit numbers is compared in end_to_end/device_numerics, by name.
OF_SMALL_NUMBERS = {
    "scaled_mm",
    "scaled_mm_of_aten",
    "scaled_mm_by_recipes",
    "quantized",
    "quantized_with_scale",
    "dequantized",
    "product_of_bytes",
}

# Constraints on values, which a sample does not give: native/test_resample.py, native/test_collectives.py, and below.
BY_VALUES = {
    "resample": {"C2", "C3", "C4"},
    "embedding": {"C2"},
    "all_gather_into_tensor": {"C1"},
    "reduce_scatter_tensor": {"C3"},
    "all_to_all_single": {"C2"},
}


def name(entry: OpEntry) -> str:
    return entry.name


@pytest.mark.parametrize("entry", ENTRIES, ids=name)
def test_entry_is_complete(entry: OpEntry) -> None:
    assert entry.doc.splitlines()[0].endswith("."), "the first line is a sentence"
    if entry.name in FOR_COMPOSITIONS | OF_PACKAGES | OF_SMALL_NUMBERS or entry.family is Family.COLLECTIVE:
        return
    assert [s for s in entry.samples if s.breaks is None], "an entry has a good sample"
    lowered = entry.opfunc is not None or entry.decompose is not None
    # `_to_copy` is a movement whose hardware function depends on the two types.
    assert lowered or entry.family in (Family.VIEW, Family.CREATION, Family.MOVEMENT)


@pytest.mark.parametrize("entry", ENTRIES, ids=name)
def test_hardware_claim_has_a_source(entry: OpEntry) -> None:
    if entry.opfunc is not None and entry.family is not Family.MOVEMENT:
        assert entry.source


@pytest.mark.parametrize("entry", ENTRIES, ids=name)
def test_constraints_are_those_that_samples_break(entry: OpEntry) -> None:
    """Nothing is broken that is not documented, and nothing is documented that nothing breaks."""
    broken = {sample.breaks for sample in entry.samples if sample.breaks is not None}
    assert set(re.findall(r"\bC\d(?=:)", entry.doc)) - BY_VALUES.get(entry.name, set()) == broken


def test_overload_claimed_twice_names_both_owners() -> None:
    table = Table("acme")

    @table.pointwise(aten=["twice.Tensor"])
    def double(self: Lanes) -> Lanes:
        """Twice the element."""
        return self + self

    with pytest.raises(ValueError, match=r"acme\.twice\.Tensor is claimed by both double and again"):

        @table.pointwise(aten=["once", "twice.Tensor"])
        def again(self: Lanes) -> Lanes:
            """Twice the element."""
            return 2 * self

    assert table.find("twice.Tensor") is double


def test_refused_entry_leaves_no_trace() -> None:
    table = Table("acme")

    @table.pointwise(aten=["b"])
    def first(self: Lanes) -> Lanes:
        """The element."""
        return self

    with pytest.raises(ValueError, match="claimed by both"):

        @table.pointwise(aten=["a", "b"])
        def second(self: Lanes) -> Lanes:
            """The element."""
            return self

    assert table.find("a") is None
    assert list(table) == [first]


def test_parameters_follow_the_signature() -> None:
    layer_norm = ATEN.find("layer_norm")
    assert layer_norm is not None
    assert [(p.name, p.kind, p.required) for p in layer_norm.params[:4]] == [
        ("input", ArgKind.TENSOR, True),
        ("weight", ArgKind.TENSOR, False),
        ("bias", ArgKind.TENSOR, False),
        ("normalized_shape", ArgKind.INTS, True),
    ]
    assert layer_norm.param("eps") is not None
    assert layer_norm.param("epsilon") is None


def test_a_composed_operation_has_no_meaning_of_its_own() -> None:
    entry = ATEN.find("elu")
    assert entry is not None
    with pytest.raises(TypeError, match="means what its parts mean"):
        entry.meaning(np.zeros(2))


def test_hardware_function_finds_its_first_entry() -> None:
    entry = ATEN.by_opfunc("batchmatmul")
    assert entry is not None
    assert entry.name == "matmul"
    assert ATEN.by_opfunc("no such function") is None


def test_require_names_the_constraint() -> None:
    require("C1", True, "fine")
    with pytest.raises(ConstraintError, match="C2: not fine"):
        require("C2", False, "not fine")


def test_every_hardware_function_of_the_table_is_declared() -> None:
    used = {entry.opfunc for entry in ENTRIES if entry.opfunc is not None}
    assert used <= set(FUNCTIONS)
    assert all(FUNCTIONS[entry.opfunc].unit is entry.unit for entry in ENTRIES if entry.opfunc is not None)


def test_only_some_reductions_take_the_suffix() -> None:
    assert function_of("sumnonstick") is FUNCTIONS["sum"]
    assert function_of("exx2nonstick") is None
    assert function_of("addnonstick") is None


def test_an_index_outside_the_table_breaks_a_constraint() -> None:
    embedding = ATEN.named("embedding")
    assert embedding is not None
    with pytest.raises(ConstraintError, match="C2: an index lies outside the 3 rows"):
        embedding.meaning(np.zeros((3, 2)), np.array([0, 3]))
