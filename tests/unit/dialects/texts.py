"""Programs as text: read, look up an op, print."""

from __future__ import annotations

from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from spyre_mlir.text.render import module_text, parse_module, verify_module
from spyre_mlir.universe import make_context

Wanted = TypeVar("Wanted", bound=Operation)


def read(text: str) -> ModuleOp:
    """A module that verifies; where ops stand in the text is left out."""
    module = parse_module(text, make_context(), locations=False)
    verify_module(module)
    return module


def function(arguments: str, *lines: str, grid: str = "") -> str:
    """A function with a body; `grid` as in `[4, 8]`."""
    attributes = f" attributes {{grid = {grid}}}" if grid else ""
    return f"func.func @f({arguments}){attributes} {{\n" + "\n".join(lines) + "\nfunc.return\n}"


def only(module: ModuleOp, kind: type[Wanted]) -> Wanted:
    """The one op of a class."""
    (found,) = (op for op in module.walk() if isinstance(op, kind))
    return found


def lines_of(module: ModuleOp) -> list[str]:
    """The text of a module, without indentation; the printer's line breaks stay."""
    return [line.strip() for line in module_text(module).splitlines()]
