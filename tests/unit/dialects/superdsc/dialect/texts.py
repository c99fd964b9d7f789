"""Text of ops and of their parts, written and read."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.printer import Printer

from spyre_mlir.dialects.superdsc import Superdsc
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_from_json
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from tests.paths import DATA


def written(write: Callable[[Printer], object]) -> str:
    """What a function prints."""
    stream = StringIO()
    write(Printer(stream))
    return stream.getvalue()


def reader(text: str) -> Parser:
    """A parser at the beginning of a text."""
    context = Context()
    context.load_dialect(Builtin)
    context.load_dialect(Superdsc)
    return Parser(context, text)


def parsed(text: str) -> Operation:
    """The one op of a text, not verified."""
    op = reader(text).parse_module().body.block.first_op
    assert op is not None
    op.detach()
    return op


def file_op(name: str) -> SdscOp:
    """The op that mirrors an example file."""
    ((root, fields),) = json.loads((DATA / f"{name}.json").read_text()).items()
    return sdsc_from_json(root, fields)
