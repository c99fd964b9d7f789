"""Fields that the back end writes, against the reference page and the public file that shows them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spyre_mlir.dialects.superdsc.model.backend_fields import BACK_END_TABLES, OPERAND_BOOKKEEPING
from spyre_mlir.dialects.superdsc.model.field import FieldWriter, Level
from tests.paths import DATA
from tests.unit.dialects.superdsc.model.pages import assert_as_published, rows

LEVELS = [
    Level.SHARE,
    Level.DATA_DSC,
    Level.DATA_CLASS,
    Level.DATA_OPERAND,
    Level.PIECE,
    Level.PLACEMENT,
    Level.DATA_OP,
    Level.RESTICKIFY,
]


@pytest.mark.parametrize("level", LEVELS)
def test_tables_say_what_the_page_says(level: Level) -> None:
    assert_as_published(level, BACK_END_TABLES[level])


def test_every_field_is_the_back_ends_and_none_is_certain() -> None:
    assert list(BACK_END_TABLES) == LEVELS
    for table in BACK_END_TABLES.values():
        for field in table.values():
            assert (field.writer, field.name, field.default, field.allowed) == (FieldWriter.BACK_END, "", "", ())
            assert field.certainty == ("I" if field.meaning == "not public" else "L")


def test_every_key_of_the_public_file_is_there() -> None:
    ((_, top),) = json.loads((DATA / "superdsc_real/09_backend_written_sdsc_dcg.json").read_text()).items()
    ((_, dsc),) = top["datadscs_"][0].items()
    seen: dict[Level, Any] = {
        Level.DATA_DSC: dsc,
        Level.DATA_CLASS: dsc["primaryDs_"][0],
        Level.DATA_OPERAND: dsc["labeledDs_"][0],
        Level.PIECE: dsc["labeledDs_"][0]["PieceInfo"][0],
        Level.PLACEMENT: dsc["labeledDs_"][0]["PieceInfo"][0]["PlacementInfo"][0],
        Level.DATA_OP: dsc["op"],
        Level.RESTICKIFY: dsc["op"]["retickifyInfo"],
    }
    for level, value in seen.items():
        assert set(value) <= set(BACK_END_TABLES[level]), level


def test_bookkeeping_is_the_end_of_an_operands_table() -> None:
    page = [(key, kind, meaning) for key, kind, meaning, *_ in rows(Level.LABELED_DS)][-len(OPERAND_BOOKKEEPING) :]
    assert [(f"`{key}`", kind.value, meaning) for key, _, kind, meaning in OPERAND_BOOKKEEPING] == page
    names = "is_static is_first_use is_external density level data_transfers hbm_start lx_start hbm_size lx_size"
    assert [name for _, name, _, _ in OPERAND_BOOKKEEPING] == f"{names} lx_buffer_size total_slices core_state".split()
