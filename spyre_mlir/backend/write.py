"""Writing of SuperDSC files.

Decision: docs/decisions/0008-host-program-on-disk.md
"""

from __future__ import annotations

from spyre_mlir.backend.json_file import dump_text
from spyre_mlir.dialects.superdsc import SdscOp
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_to_json


def write_json(op: SdscOp) -> str:
    """Return the file's text: values and order exactly as in the op, in one fixed formatting."""
    return dump_text(sdsc_to_json(op))
