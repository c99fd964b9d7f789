"""Target card of a module: the attribute ``spyre.target``, and its machine numbers.

Passes and verifiers read the machine's numbers from the module they work on, so the text of a program says everything
about its card. A module without the attribute is for the standard card.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Data, Operation
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from spyre_mlir.dialects.context import SpyreContext
from spyre_mlir.dialects.ir.modules import take_apart
from spyre_mlir.hw.spec import SPYRE, SpyreSpec, spec_with

TARGET = "spyre.target"


@irdl_attr_definition
class TargetAttr(Data[SpyreSpec]):
    """A card, by its differences from the standard one: ``#spyre.target<cores_per_card = 64>``."""

    name = "spyre.target"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> SpyreSpec:
        """Reads ``name = number`` pairs between angle brackets."""
        start = parser.pos
        pairs = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, lambda: _pair(parser))
        try:
            return spec_with(dict(pairs))
        except ValueError as error:
            parser.raise_error(str(error), start, parser.pos)

    def print_parameter(self, printer: Printer) -> None:
        """Writes the numbers that differ from the standard card's."""
        with printer.in_angle_brackets():
            printer.print_list(
                self.data.differences().items(), lambda pair: printer.print_string(f"{pair[0]} = {pair[1]}")
            )


def _pair(parser: AttrParser) -> tuple[str, int]:
    name = parser.parse_identifier(": the name of a number of the card")
    parser.parse_punctuation("=")
    return name, parser.parse_integer(allow_boolean=False)


def spec_at(op: Operation) -> SpyreSpec:
    """Return the card of an op: that of the innermost module around it that names one, else the standard card."""
    at: Operation | None = op
    while at is not None:
        if isinstance(target := at.attributes.get(TARGET), TargetAttr):
            return target.data
        at = at.parent_op()
    return SPYRE


def spec_of(ctx: Context, module: ModuleOp) -> SpyreSpec:
    """Return the card that a pass compiles a module for: the module's own, else the context's.

    The module names the context's card from then on, so that verifiers and later readers of its text agree.
    """
    if TARGET not in module.attributes and isinstance(ctx, SpyreContext) and ctx.spec != SPYRE:
        set_target(module, ctx.spec)
    return spec_at(module)


def set_target(module: ModuleOp, spec: SpyreSpec) -> None:
    """Set the card of a module; the standard card is left implicit."""
    if spec == SPYRE:
        module.attributes.pop(TARGET, None)
    else:
        module.attributes[TARGET] = TargetAttr(spec)


@contextmanager
def in_module_for(spec: SpyreSpec, op: Operation) -> Generator[None]:
    """Put a detached op inside the block into a module for a card, so that its verifier knows the card."""
    module = ModuleOp([op])
    set_target(module, spec)
    try:
        yield
    finally:
        op.detach()
        take_apart(module)


def module_like(module: ModuleOp, ops: Sequence[Operation]) -> ModuleOp:
    """Return a module of other ops for the same card."""
    made = ModuleOp(list(ops))
    set_target(made, spec_at(module))
    return made
