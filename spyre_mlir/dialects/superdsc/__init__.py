"""The superdsc dialect: a faithful mirror of the SuperDSC JSON, one op per file object."""

from xdsl.ir import Dialect

from spyre_mlir.dialects.superdsc.dialect.attributes import JsonAttr
from spyre_mlir.dialects.superdsc.dialect.ops import AllocateOp, ComputeOp, ConstantOp, DscOp, LabeledDsOp, SdscOp

Superdsc = Dialect("superdsc", [SdscOp, DscOp, AllocateOp, LabeledDsOp, ConstantOp, ComputeOp], [JsonAttr])

__all__ = ["AllocateOp", "ComputeOp", "ConstantOp", "DscOp", "JsonAttr", "LabeledDsOp", "SdscOp", "Superdsc"]
