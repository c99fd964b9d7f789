"""The superdsc dialect: a faithful mirror of the SuperDSC JSON, one op per file object."""

from xdsl.ir import Dialect

from spyre_mlir.dialects.superdsc.dialect.attributes import JsonAttr
from spyre_mlir.dialects.superdsc.dialect.layouts import (
    AllocationType,
    DimsAttr,
    LabeledDsType,
    LayoutClassAttr,
    ScalarAttr,
)
from spyre_mlir.dialects.superdsc.dialect.ops import (
    AllocateOp,
    DscOp,
    LabeledDsOp,
    SdscComputeOp,
    SdscConstantOp,
    SdscOp,
)

Superdsc = Dialect(
    "superdsc",
    [SdscOp, DscOp, AllocateOp, LabeledDsOp, SdscConstantOp, SdscComputeOp],
    [JsonAttr, DimsAttr, LayoutClassAttr, ScalarAttr, AllocationType, LabeledDsType],
)

__all__ = ["AllocateOp", "DscOp", "JsonAttr", "LabeledDsOp", "SdscComputeOp", "SdscConstantOp", "SdscOp", "Superdsc"]
