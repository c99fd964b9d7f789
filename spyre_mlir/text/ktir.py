"""KTIR in the text form that third-party readers accept: a restricted form of MLIR's.

ktir-cpu's default reader works on lines and patterns (its sources, August 2026; likely). It takes no `grid` whose
numbers carry a type and would run such a program on one core; and it takes an unknown spelling of a memory space for
device memory. So the grid is printed as upstream MLIR prints it, and the spelling can be chosen.

Decision: docs/decisions/0109-ktir-of-other-emitters.md
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from io import StringIO

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from spyre_mlir.dialects.ktdp.attributes import GLOBAL, LOCAL, MemorySpace, memory_space
from spyre_mlir.text.printer import SpyrePrinter

_PLAIN = re.compile(r"\w+")


class KtirPrinter(SpyrePrinter):
    """A printer of KTIR.

    Args:
        stream: where the text goes.
        older_spaces: whether memory spaces are spelled as before August 2026.
    """

    def __init__(self, stream: StringIO, *, older_spaces: bool = False) -> None:
        super().__init__(stream)
        self._older = older_spaces

    def print_attribute(self, attribute: Attribute) -> None:
        """Print an attribute: 64-bit numbers of a list without their type, memory spaces in the chosen spelling."""
        match attribute:
            case ArrayAttr() if (numbers := _numbers(attribute)) is not None:
                self.print_string(f"[{', '.join(map(str, numbers))}]")
            case MemorySpace():
                kind = LOCAL if attribute.is_local else GLOBAL
                super().print_attribute(memory_space(kind, attribute.core, older=self._older))
            case _:
                super().print_attribute(attribute)


def ktir_text(module: Operation, *, older_spaces: bool = False) -> str:
    """Return the text of a KTIR module, for our own tools or third-party ones.

    Args:
        module: not changed, but for names of values: those with other signs than letters, digits and `_` are dropped.
        older_spaces: spell memory spaces `#ktdp.spyre_memory_space<HBM>` instead of `#ktdp.memory_space<global>`.
    """
    for value in _values(module):
        if value.name_hint is not None and not _PLAIN.fullmatch(value.name_hint):
            value.name_hint = None
    stream = StringIO()
    KtirPrinter(stream, older_spaces=older_spaces).print_op(module)
    return stream.getvalue() + "\n"


def _numbers(array: Iterable[Attribute]) -> list[int] | None:
    found = [one.value.data for one in array if isinstance(one, IntegerAttr) and one == IntegerAttr(one.value, i64)]
    return found if found and len(found) == len(list(array)) else None


def _values(module: Operation) -> list[SSAValue]:
    found: list[SSAValue] = []
    for op in module.walk():
        found += op.results
        found += [argument for region in op.regions for block in region.blocks for argument in _arguments(block)]
    return found


def _arguments(block: Block) -> list[SSAValue]:
    return list(block.args)
