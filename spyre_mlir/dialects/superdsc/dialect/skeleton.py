"""Skeletons of SuperDSCs: the facts that remain without number and start addresses.

Most SuperDSCs of a model have a skeleton in common with others, because an operation comes in every layer. Whether one
verifies, and what its text is, follows from the skeleton but for the numbers left out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache, wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

from xdsl.dialects.builtin import I64, DenseArrayBase
from xdsl.ir import Attribute, Operation, SSAValue

_KEPT = 1 << 12
_START, _NAME, _ROOT = "start", "sym_name", "root"

_Sdsc = TypeVar("_Sdsc", bound=Operation)
_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


def by_skeleton(
    question: Callable[Concatenate[_Sdsc, _Given], _Found],
) -> Callable[Concatenate[_Sdsc, _Given], _Found]:
    """Decorator: a function of a SuperDSC whose result follows from the skeleton and the other arguments.

    The result is shared, and must be immutable. A question that raises is asked again.
    """

    @lru_cache(maxsize=_KEPT)
    def answers(_skeleton: Hashable, _given: Hashable) -> list[_Found]:
        return []

    @wraps(question)
    def answer(op: _Sdsc, *args: _Given.args, **kwargs: _Given.kwargs) -> _Found:
        if (skeleton := skeleton_of(op)) is None:
            return question(op, *args, **kwargs)
        found = answers(skeleton, (args, *kwargs.items()))
        if not found:
            found.append(question(op, *args, **kwargs))
        return found[0]

    return answer


def skeleton_of(sdsc: Operation) -> Hashable | None:
    """Return a value that SuperDSCs have in common if they differ in number and start addresses only.

    The number is the part of the symbol in front of the first underscore. Attributes of the SuperDSC itself, which
    are no part of its file, do not count; those of the ops in it do.

    Args:
        sdsc: a ``superdsc.sdsc``.

    Returns:
        The skeleton; None if an op in the SuperDSC reads values from outside, or its root key is no symbol.
    """
    if _ROOT in sdsc.properties:
        return None
    places: dict[Operation, int] = {}
    values: dict[SSAValue, tuple[int, int]] = {}
    rows: list[Hashable] = []
    for op in sdsc.walk():
        operands = [values.get(v) for v in op.operands]
        if None in operands:
            return None
        places[op] = len(places)
        values |= {result: (places[op], number) for number, result in enumerate(op.results)}
        parent = -1 if op is sdsc else places.get(op.parent_op() or sdsc)
        attributes = () if op is sdsc else tuple(op.attributes.items())
        types = tuple(result.type for result in op.results)
        rows.append((op.name, parent, tuple(operands), types, tuple(_properties(op)), attributes))
    return tuple(rows)


def _properties(op: Operation) -> Iterator[tuple[str, Hashable]]:
    for name, attribute in op.properties.items():
        if name == _START and isinstance(attribute, DenseArrayBase):
            array = cast("DenseArrayBase[I64]", attribute)
            yield name, (array.elt_type, len(array))
        elif name == _NAME:
            yield name, _function(attribute)
        else:
            yield name, attribute


def _function(name: Attribute) -> Hashable:
    """The name of a SuperDSC without its number."""
    text = getattr(name, "data", None)
    index, _, function = text.partition("_") if isinstance(text, str) else ("", "", "")
    return (type(name), function) if index.isdecimal() else name


__all__ = ["by_skeleton", "skeleton_of"]
