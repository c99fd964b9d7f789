"""Sizes bound when the bundle runs: their members in the file (newest torch-spyre code generation; likely)."""

from __future__ import annotations

from spyre_mlir.dialects.superdsc.codec.cursor import Cursor
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, SymbolicSize
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject
from spyre_mlir.errors import EmitError


def limits(view: Descriptor) -> JsonObject:
    """Return `symbolicDimInfo_` of a stage: limits divided by the split."""
    return {
        dim.label: {
            keys.MAX_SIZE: dim.per_core,
            keys.GRANULARITY: max(1, dim.symbolic.granularity // dim.split),
        }
        for dim in view.dims
        if dim.symbolic is not None
    }


def mapping(view: Descriptor) -> JsonObject:
    """Return `dimToSymbolMapping_`."""
    return {dim.label: [dim.symbolic.symbol] for dim in view.dims if dim.symbolic is not None}


def top_fields(view: Descriptor) -> JsonObject:
    """Return members of the top-level object; none without symbolic sizes."""
    sizes = [dim.symbolic for dim in view.dims if dim.symbolic is not None]
    if not sizes:
        return {}
    return {
        keys.DATA_DSCS: [],
        keys.SYMBOL_CORRECTION: {},
        keys.INPUT_SYMBOLS: {str(size.symbol): size.name for size in sizes},
        keys.SYMBOL_DEFINITIONS: {},
    }


def read_symbolic(top: Cursor, dsc: Cursor, dim: Dim) -> SymbolicSize | None:
    """Return the symbolic size of a dim, from the mapping and the first stage; None where the size is fixed.

    Raises:
        ReadError: the members contradict each other.
    """
    if keys.SYMBOL_MAPPING not in dsc or dim.label not in dsc.at(keys.SYMBOL_MAPPING):
        return None
    symbol = dsc.at(keys.SYMBOL_MAPPING).at(dim.label).only().number()
    names = top.at(keys.INPUT_SYMBOLS)
    if str(symbol) not in names:
        names.fail(f"a name for symbol {symbol}", f"names for {[key for key, _ in names.members()]}")
    stage = dsc.at(keys.STAGES).at("0").at(keys.STEADY).at(keys.SYMBOLIC_DIMS).at(dim.label)
    if stage.at(keys.MAX_SIZE).integer() != dim.per_core:
        stage.at(keys.MAX_SIZE).fail(f"the {dim.per_core} elements of one slice")
    return SymbolicSize(names.at(str(symbol)).text(), symbol, stage.at(keys.GRANULARITY).integer() * dim.split)


def check_symbolic(view: Descriptor, where: str) -> None:
    """Refuse symbolic sizes that the format cannot express.

    Raises:
        EmitError: what is wrong.
    """
    sticks = {label for operand in view.operands for label in operand.stick_lanes}
    for dim in view.dims:
        size = dim.symbolic
        if size is None:
            continue
        if dim.label in sticks:
            raise EmitError(f"dim {dim.label} is in a stick and cannot have a symbolic size", where=where)
        if size.symbol >= 0:
            raise EmitError(f"symbol {size.symbol} of dim {dim.label} must be negative", where=where)
        if size.granularity % dim.split or dim.extent % size.granularity:
            message = f"dim {dim.label}: {dim.split} slices, granularity {size.granularity}, at most {dim.extent}"
            raise EmitError(message, where=where, hint="slices divide the granularity, and that the largest size")
        if dim.split > 1 and not all(
            o.symbolic or o.component == keys.LX for o in view.operands if dim.label in o.order
        ):
            raise EmitError(f"dim {dim.label} is symbolic and divided: addresses must be symbolic", where=where)
