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
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject
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


def manager(functions: list[str], cores: int, data: JsonObject) -> JsonObject:
    """A fold manager over cores, corelets and time."""
    factors: list[Json] = [{"factor_": n, "label_": name} for n, name in ((cores, "core"), (1, "corelet"), (1, "time"))]
    return {"dim_prop_func": [{name: {}} for name in functions], "dim_prop_attr": factors, "data_": data}


def starts(*addresses: Json) -> JsonObject:
    """The start address of each core."""
    data = {f"[{core}, 0, 0]": address for core, address in enumerate(addresses)}
    return manager(["Map", "Const", "Const"], len(addresses), data)


def constant(*words: Json) -> JsonObject:
    """A constant of four cores."""
    return manager(["Const", "Const", "Map"], 4, {"[0, 0, 0]": [*words]})
