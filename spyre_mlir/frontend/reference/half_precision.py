"""Half-precision programs: the reference is double precision, so none of their results is rounded.

Decision: docs/decisions/0025-half-precision-references.md
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, UnitAttr, bf16, f16, f32
from xdsl.ir import Attribute

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.tensors import as_tensor_type


def has_halves(module: ModuleOp) -> bool:
    """Return whether some tensor of a program is in half precision."""
    values = (v for op in module.walk() for v in (*op.results, *(a for r in op.regions for a in r.block.args)))
    return any(_element(v.type) in (bf16, f16) for v in values)


def keep_wide(module: ModuleOp) -> None:
    """Mark values computed in or from float32 as not rounded."""
    for op in module.walk():
        if isinstance(op, AtenOp) and any(_element(v.type) == f32 for v in (*op.operands, *op.results)):
            op.wide = UnitAttr()


def _element(type_: Attribute) -> Attribute | None:
    tensor = as_tensor_type(type_)
    return None if tensor is None else tensor.get_element_type()
