"""Reading of SuperDSC files, ours and third-party."""

from __future__ import annotations

from pathlib import Path

from xdsl.utils.exceptions import VerifyException

from spyre_mlir.backend.json_file import load_text, read_text
from spyre_mlir.dialects.superdsc import SdscOp
from spyre_mlir.dialects.superdsc.codec.json_place import json_path
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_from_json
from spyre_mlir.dialects.superdsc.dialect.verify import wrong_kind
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.json_value import spell
from spyre_mlir.dialects.target import in_module_for
from spyre_mlir.errors import ReadError
from spyre_mlir.hw.spec import SPYRE, SpyreSpec

_SHOWN = 60


def read_json(source: Path | str, filename: str | None = None, spec: SpyreSpec = SPYRE) -> SdscOp:
    """Read a SuperDSC file into the op that mirrors it.

    Args:
        source: a path, or the JSON text itself.
        filename: name for messages; needed for text, taken from the path otherwise.
        spec: the card it is for.

    Raises:
        ReadError: the file is missing, is no JSON, or is no SuperDSC; names file, place, expected and got.
    """
    if isinstance(source, Path):
        return _mirror(read_text(source), filename or str(source), spec)
    return _mirror(source, filename or "<text>", spec)


def _mirror(text: str, filename: str, spec: SpyreSpec) -> SdscOp:
    value = load_text(text, filename)
    if not isinstance(value, dict) or len(value) != 1:
        got = f"keys {list(value)}" if isinstance(value, dict) else spell(value)[:_SHOWN]
        raise ReadError(f"expected an object with one root key, got {got}", where=f"{filename}: $")
    ((root, fields),) = value.items()
    if not isinstance(fields, dict):
        raise ReadError(f"expected an object, got {spell(fields)[:_SHOWN]}", where=f"{filename}: $.{root}")
    if not any(key in fields for key in (keys.DSCS, keys.DATA_DSCS, keys.DATA_OP_DSCS)):
        raise ReadError(f"expected a list {keys.DSCS}, got members {list(fields)}", where=f"{filename}: $.{root}")
    op = sdsc_from_json(root, fields)
    _check_kinds(op, filename)
    with in_module_for(spec, op):
        _verify(op, filename)
    return op


def _verify(op: SdscOp, filename: str) -> None:
    for inner in op.mirrors():
        try:
            inner.verify(verify_nested_ops=False)
        except VerifyException as error:
            raise ReadError(str(error.args[0]), where=f"{filename}: {json_path(inner)}") from error


def _check_kinds(op: SdscOp, filename: str) -> None:
    """Every known key has its JSON type, down to the entries of the lists."""
    for inner in op.mirrors():
        wrong = wrong_kind(inner.LEVEL, inner.fields)
        if wrong is not None:
            key, expected = wrong
            got = spell(inner.fields[key])[:_SHOWN]
            raise ReadError(f"expected {expected}, got {got}", where=f"{filename}: {json_path(inner)}.{key}")
