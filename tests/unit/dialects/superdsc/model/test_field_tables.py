"""Fields of the file's object and of a DSC, against the reference page, the published schema and real files."""

from __future__ import annotations

import json

import pytest

from spyre_mlir.dialects.superdsc.model.field import Level
from spyre_mlir.dialects.superdsc.model.field_tables import DSC, OP_TABLES, SDSC
from tests.paths import DATA
from tests.unit.dialects.superdsc.model.pages import TITLES, assert_as_published, assert_named


@pytest.mark.parametrize("level", OP_TABLES)
def test_tables_say_what_the_page_says(level: Level) -> None:
    assert_as_published(level, OP_TABLES[level])


def test_the_objects_with_an_op_have_a_table() -> None:
    assert list(OP_TABLES) == list(TITLES)
    assert OP_TABLES[Level.SDSC] is SDSC
    assert OP_TABLES[Level.DSC] is DSC


def test_names_in_text() -> None:
    assert_named(
        SDSC,
        "debug_handle fold_props folds core_fold corelet_fold cores_used core_to_dsc splits core_to_slice schedule "
        "lx_relayout on_chip_move streaming_lx dscs data_dscs data_op_dscs op_funcs_used target sizes unpadded_sizes "
        "share_info producers program_config spb fold_coord folded_name symbol_correction input_symbols "
        "symbol_definitions",
    )
    assert_named(
        DSC,
        "cores_used corelets_used core_ids sizes masking mask_constant symbol_mapping stages classes class_relation "
        "schedule_tree labeled_ds constants compute dsc_sizes chip_sizes chiplet_sizes core_sizes corelet_sizes "
        "block_sizes time_sizes time_epilogue pe_sizes pe_epilogue unpadded_sizes loop_order loop_properties "
        "aux_loop_order scattered_hbm",
    )


@pytest.mark.parametrize("name", ["01_add_512x512_32core_hbm", "03_batchmatmul_512_mb32", "06_ReStickifyOpLx_lx"])
def test_the_order_is_that_of_real_files(name: str) -> None:
    ((_, top),) = json.loads((DATA / f"superdsc_real/{name}.json").read_text()).items()
    ((_, dsc),) = top["dscs_"][0].items()
    for table, value in ((SDSC, top), (DSC, dsc)):
        assert [key for key in table if key in value] == list(value)


def test_targets_of_the_schema_are_allowed() -> None:
    schema = json.loads((DATA / "sdsc_schema.json").read_text())["$defs"]["SuperDSCObject"]["properties"]
    assert set(schema["target_"]["enum"]) < set(SDSC["target_"].allowed)
