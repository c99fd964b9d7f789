"""Fields of operands, constants and operations, against the reference page, the published schema and real files."""

from __future__ import annotations

import json

import pytest

from spyre_mlir.dialects.superdsc.model.field import FieldTable, Level
from spyre_mlir.dialects.superdsc.model.operand_fields import ALLOCATE, COMPUTE, CONSTANT, LABELED_DS
from tests.paths import DATA
from tests.unit.dialects.superdsc.model.pages import assert_as_published, assert_named

TABLES = {
    Level.ALLOCATE: ALLOCATE,
    Level.LABELED_DS: LABELED_DS,
    Level.CONSTANT: CONSTANT,
    Level.COMPUTE: COMPUTE,
}


@pytest.mark.parametrize("level", TABLES)
def test_tables_say_what_the_page_says(level: Level) -> None:
    assert_as_published(level, TABLES[level])


def test_names_in_text() -> None:
    assert_named(
        ALLOCATE,
        "node_type name prev index component symbolic order max_sizes indirect indirect_partner index_type start "
        "padding back_gap coordinates allocate_coordinates",
    )
    assert_named(
        LABELED_DS,
        "index name class scale word_length format memory is_static is_first_use is_external density level "
        "data_transfers hbm_start lx_start hbm_size lx_size lx_buffer_size total_slices core_state",
    )
    assert_named(CONSTANT, "format name data")
    assert_named(COMPUTE, "unit function attributes location inputs outputs indices interim")


@pytest.mark.parametrize(
    ("key", "table"), [("scheduleTree_", ALLOCATE), ("labeledDs_", LABELED_DS), ("computeOp_", COMPUTE)]
)
def test_the_order_is_that_of_a_real_file(key: str, table: FieldTable) -> None:
    ((_, top),) = json.loads((DATA / "superdsc_real/06_ReStickifyOpLx_lx.json").read_text()).items()
    ((_, dsc),) = top["dscs_"][0].items()
    for value in dsc[key]:
        assert [name for name in table if name in value] == list(value)


def test_classes_are_among_those_of_the_schema() -> None:
    schema = json.loads((DATA / "sdsc_schema.json").read_text())["$defs"]["LabeledDsInfo"]["properties"]
    assert set(LABELED_DS["dsType_"].allowed) < set(schema["dsType_"]["enum"])
