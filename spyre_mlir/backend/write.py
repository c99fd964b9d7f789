"""Writing of SuperDSC files: one text per skeleton, filled in with root key and start addresses.

Decision: docs/decisions/0008-host-program-on-disk.md
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from spyre_mlir.backend.json_file import dump_text, keeps_its_lines
from spyre_mlir.dialects.superdsc import SdscOp
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_to_json
from spyre_mlir.dialects.superdsc.dialect.ops import AllocateOp
from spyre_mlir.dialects.superdsc.dialect.skeleton import by_skeleton
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject, as_list, as_object, spell

_LONGEST = 64  # characters of a root key or an address
_BLANK = "~"


def write_json(op: SdscOp) -> str:
    """Return the file's text: values and order exactly as in the op, in one fixed formatting."""
    pieces = _pieces(op)
    if pieces is None or len(op.root_key) > _LONGEST:
        return dump_text(sdsc_to_json(op))
    starts = (f'"{address}"' for node in _nodes(op) for address in _starts(node))
    return "".join(chain.from_iterable(zip(pieces, (spell(op.root_key), *starts, ""), strict=True)))


@by_skeleton
def _pieces(op: SdscOp) -> tuple[str, ...] | None:
    """The text between root key and start addresses; None for odd files, and where their lengths would break lines."""
    (fields,) = sdsc_to_json(op).values()
    text = _blanked(fields)
    blanks = 1 + sum(len(_starts(node)) for node in _nodes(op))
    if text.count(_BLANK) != blanks or not keeps_its_lines(text, _BLANK, _LONGEST):
        return None
    return tuple(text.split(f'"{_BLANK}"'))


def _blanked(fields: Json) -> str:
    """The text of a file whose root key and start addresses are replaced by a blank."""
    for data in _start_data(fields):
        for core in data:
            data[core] = _BLANK
    return dump_text({_BLANK: fields})


def _nodes(op: SdscOp) -> list[AllocateOp]:
    return [node for dsc in op.dscs() for node in dsc.body.block.ops if isinstance(node, AllocateOp)]


def _starts(node: AllocateOp) -> tuple[int, ...]:
    return () if node.start is None else node.start.get_values()


def _start_data(fields: Json) -> Iterator[JsonObject]:
    """The start addresses of a file by core, of one allocate node after the other."""
    for dsc in as_list((as_object(fields) or {}).get(keys.DSCS)) or []:
        for body in (as_object(dsc) or {}).values():
            for node in as_list((as_object(body) or {}).get(keys.SCHEDULE_TREE)) or []:
                start = as_object((as_object(node) or {}).get(keys.START)) or {}
                yield as_object(start.get(keys.DATA)) or {}
