"""Writing SuperDSC files."""

from __future__ import annotations

from spyre_mlir.backend.json_file import dump_text
from spyre_mlir.dialects.superdsc import SdscOp
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_to_json


def write_json(op: SdscOp) -> str:
    """The file's text: the same values in the same order as the op holds, one way of formatting."""
    return dump_text(sdsc_to_json(op))
