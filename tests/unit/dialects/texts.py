"""Programs as text: read, look up an op, print; and a parser for pieces of text."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.transforms.canonicalize import CanonicalizePass

from spyre_mlir.text.render import module_text, parse_module, verify_module
from spyre_mlir.universe import make_context

Wanted = TypeVar("Wanted", bound=Operation)


def read(text: str) -> ModuleOp:
    """A module that verifies, without the places of its ops in the text."""
    module = parse_module(text, make_context(), locations=False)
    verify_module(module)
    return module


def canonical(text: str) -> ModuleOp:
    """The module after `canonicalize`."""
    module = read(text)
    CanonicalizePass().apply(make_context(), module)
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
    """The lines of a module's text, without indentation."""
    return [line.strip() for line in module_text(module).splitlines()]


def parser_of(text: str, **values: SSAValue) -> Parser:
    """A parser at the start of a piece of text that may name these values."""
    parser = Parser(make_context(), text)
    parser.ssa_values.update({name: (value,) for name, value in values.items()})
    return parser


def printed(write: Callable[[Printer], None]) -> str:
    """What a function writes."""
    stream = StringIO()
    write(Printer(stream))
    return stream.getvalue()
