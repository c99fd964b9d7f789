"""Paths of the objects that ops mirror."""

from __future__ import annotations

import json

from spyre_mlir.dialects.superdsc.codec.json_place import json_path
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_from_json
from spyre_mlir.dialects.superdsc.dialect.fields_op import FieldsOp
from spyre_mlir.dialects.superdsc.dialect.ops import AllocateOp, DscOp, SdscConstantOp, SdscOp
from tests.paths import DATA


def test_every_object_of_a_file_is_found_by_its_path() -> None:
    """A clamp: two operands, two constants, one operation."""
    ((root, fields),) = json.loads((DATA / "superdsc_worked/d32_clamp_128x256.json").read_text()).items()
    op = sdsc_from_json(root, fields)
    dsc = "$.0_clip.dscs_[0].clip"
    assert [json_path(inner) for inner in op.walk() if isinstance(inner, FieldsOp)] == [
        "$.0_clip",
        dsc,
        f"{dsc}.scheduleTree_[0]",
        f"{dsc}.scheduleTree_[1]",
        f"{dsc}.labeledDs_[0]",
        f"{dsc}.labeledDs_[1]",
        f"{dsc}.constantInfo_.0",
        f"{dsc}.constantInfo_.1",
        f"{dsc}.computeOp_[0]",
    ]


def test_dscs_are_numbered() -> None:
    op = SdscOp("0_a", {}, [DscOp("a", {}, []), DscOp("b", {}, [SdscConstantOp("k", {})])])
    second = op.dscs()[1]
    assert json_path(second) == "$.0_a.dscs_[1].b"
    assert [json_path(inner) for inner in second.items(SdscConstantOp)] == ["$.0_a.dscs_[1].b.constantInfo_.k"]


def test_ops_outside_a_file_stand_at_the_root() -> None:
    assert json_path(AllocateOp({})) == "$"
    assert json_path(DscOp("a", {}, [])) == "$"
    inside = AllocateOp({})
    assert json_path(DscOp("a", {}, [inside])) == "$"
    assert json_path(inside) == "$.scheduleTree_[0]"
