"""Groups of operands, such as the inputs of a nest: their sizes are read from the text of an op once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from xdsl.ir import Operation
from xdsl.irdl import AttrSizedOperandSegments

_SIZES = "_operand_sizes"
_Op = TypeVar("_Op", bound=Operation)


class _KnownGroup:
    """A group of operands; an op holds the sizes of its groups as long as the attribute that says them is the same."""

    def __init__(self, group: Any) -> None:
        self._group = group

    def __get__(self, op: Operation, kind: type[Operation] | None = None) -> Any:
        said, holder = op.properties[AttrSizedOperandSegments.attribute_name], vars(op)
        held = holder.get(_SIZES)
        if held is None or held[0] is not said:
            holder[_SIZES] = held = said, cast("Any", said).get_values()
        return self._group.index(held[1], op.operands)

    def __set__(self, op: Operation, value: object) -> None:
        self._group.__set__(op, value)


def known_groups(*names: str) -> Callable[[type[_Op]], type[_Op]]:
    """Return a decorator for the definition of an op whose property says how many operands each group has.

    Args:
        names: of the groups.
    """

    def decorate(kind: type[_Op]) -> type[_Op]:
        for name in names:
            setattr(kind, name, _KnownGroup(vars(kind)[name]))
        return kind

    return decorate


__all__ = ["known_groups"]
