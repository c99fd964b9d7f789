"""Conversion of text to a module and back, as called by the other packages."""

from __future__ import annotations

import struct
from io import StringIO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import ParseError, VerifyException

from spyre_mlir.dialects.ir.modules import ops_in
from spyre_mlir.errors import ReadError
from spyre_mlir.text.parser import SpyreParser
from spyre_mlir.text.printer import SpyrePrinter
from spyre_mlir.text.verify import UseBeforeDefinition, verify_dominance
from spyre_mlir.text.verify_ops import verify_ops

_UNFILLED = "suffix identifier after {first_char}"  # xDSL's message has the name of its variable


class InvalidOperation(VerifyException):
    """IR that does not verify, with the offending op.

    Args:
        message: what is wrong.
        op: the op that does not verify.
    """

    def __init__(self, message: str, op: Operation) -> None:
        super().__init__(message)
        self.op = op


def module_text(op: Operation, *, generic: bool = False, locations: bool = False) -> str:
    """Return the text of an op, without a trailing newline.

    Args:
        op: a module or any other op.
        generic: whether to use the generic format everywhere.
        locations: whether to print every op's `loc(...)`.
    """
    stream = StringIO()
    SpyrePrinter(stream, print_generic_format=generic, print_debuginfo=locations).print_op(op)
    return stream.getvalue()


class _NamingPrinter(SpyrePrinter):
    """Keeps the names it gives to values."""

    def __init__(self) -> None:
        super().__init__(StringIO())
        self.given: dict[SSAValue, str] = {}

    def print_ssa_value(self, value: SSAValue) -> str:
        """As its base does."""
        self.given[value] = super().print_ssa_value(value)
        return self.given[value]


def value_names(op: Operation) -> dict[SSAValue, str]:
    """Return the name of every value in the text of an op, without the ``%``."""
    printer = _NamingPrinter()
    printer.print_op(op)
    return printer.given


def parse_module(
    text: str | bytes,
    context: Context,
    filename: str = "<text>",
    *,
    implicit_module: bool = True,
    locations: bool = True,
    line_offset: int = 0,
) -> ModuleOp:
    """Read a module; ops without a location get their position in the text.

    The module is not verified as a whole: see `verify_module`.

    Args:
        text: the text, bytes are UTF-8.
        context: the dialects.
        filename: for messages and locations.
        implicit_module: whether ops outside of a module are put into one.
        locations: whether to attach places in the text to ops.
        line_offset: lines of the file before this text.

    Raises:
        ParseError: the text is not MLIR, or an attribute of it is not valid; knows the place.
        ReadError: the bytes are not UTF-8.
    """
    decoded = decode(text, filename, line_offset) if isinstance(text, bytes) else text
    try:
        parser = SpyreParser(context, decoded, filename, locations=locations, line_offset=line_offset)
        return _module_of(parser, implicit_module)
    except ParseError as error:
        if _UNFILLED not in str(error):
            raise
        sign = error.span.text
        raise ParseError(error.span, f"expected a name or a number behind {sign}, the text may be cut off") from error


def _module_of(parser: SpyreParser, implicit_module: bool) -> ModuleOp:
    """The module that a parser reads; errors of any kind have a place.

    Raises:
        ParseError: the text is not MLIR, or an attribute of it is not valid.
    """
    try:
        return parser.parse_module(implicit_module)
    except (VerifyException, ValueError, ArithmeticError, struct.error) as error:
        # Constructors of attributes and ops know no place in the text; the parser still does.
        parser.raise_error(str(error))
    except (AssertionError, NotImplementedError, IndexError) as error:
        # xDSL guards some of its grammar with assertions, and its ops of linalg index operands that the text lacks.
        parser.raise_error(f"this cannot be read ({str(error) or type(error).__name__})")


def decode(text: bytes, filename: str, line_offset: int = 0) -> str:
    """Decode UTF-8, without the mark of the byte order that some editors put first.

    Raises:
        ReadError: the bytes are not UTF-8; names the line.
    """
    try:
        return text.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1 + line_offset
        column = error.start - text.rfind(b"\n", 0, error.start)
        raise ReadError(
            f"the file is not UTF-8 text: byte 0x{text[error.start]:02x}",
            where=f"{filename}:{line}:{column}",
            hint="save the file as UTF-8; IR strings are best kept ASCII",
        ) from error


def verify_module(module: ModuleOp) -> None:
    """Verify a module and that every value is defined before it is used.

    Raises:
        InvalidOperation: an op does not verify; the exception knows the op.
        UseBeforeDefinition: a value is used first; the exception knows the op.
    """
    if (parent := _with_empty_block(module)) is not None:
        raise InvalidOperation("a block is empty; try a terminator, each of several blocks needs one", parent)
    try:
        verify_ops(module)
    except UseBeforeDefinition:
        raise
    except VerifyException as error:
        raise InvalidOperation(str(error), _guilty(module)) from error
    except Exception as error:
        # Any error: verifiers assume that the ops which they read are sound, and these may be verified later.
        if (found := _unsound(module)) is None:
            raise
        raise InvalidOperation(*found) from error
    verify_dominance(module)


def _with_empty_block(module: ModuleOp) -> Operation | None:
    """The first op with an empty block beside others; xDSL lets it pass, and takes quadratic time to."""
    for op in ops_in(module):
        for region in op.regions:
            if region.first_block is not region.last_block and any(block.is_empty for block in region.blocks):
                return op
    return None


def _unsound(module: ModuleOp) -> tuple[str, Operation] | None:
    """Return the error of the first op that does not verify by itself, and the op."""
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except VerifyException as error:
            return str(error), op
        except Exception:  # noqa: BLE001 - it reads an unsound op, which is found by itself
            continue
    return None


def _guilty(module: ModuleOp) -> Operation:
    """The innermost op that does not verify with what it holds."""
    guilty: Operation = module
    while (inner := _first_invalid(guilty)) is not None:
        guilty = inner
    return guilty


def _first_invalid(parent: Operation) -> Operation | None:
    for op in (op for region in parent.regions for block in region.blocks for op in block.ops):
        try:
            op.verify()
        except VerifyException:
            return op
    return None
