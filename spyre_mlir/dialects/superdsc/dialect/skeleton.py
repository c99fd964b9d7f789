"""Skeletons of SuperDSCs: the facts that remain without number and start addresses.

Most SuperDSCs of a model have a skeleton in common with others, because an operation comes in every layer. Whether one
verifies, and what its text is, follows from the skeleton but for the numbers left out.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from xdsl.dialects.builtin import I64, DenseArrayBase
from xdsl.ir import Attribute, Operation, SSAValue

_KEPT = 1 << 10
_START, _NAME, _ROOT = "start", "sym_name", "root"
_RESULT, _NOTES, _END = ("result",), ("notes",), ("end",)  # unlike the name of an op, a property or an attribute

_Sdsc = TypeVar("_Sdsc", bound=Operation)
_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


class Skeleton:
    """Facts that SuperDSCs share that differ in number and start addresses only: one object for all of them.

    Attributes:
        answers: what has been found out about it, by question and arguments.
    """

    def __init__(self) -> None:
        """Starts without answers."""
        self.answers: dict[Hashable, Any] = {}


def by_skeleton(
    question: Callable[Concatenate[_Sdsc, _Given], _Found],
) -> Callable[Concatenate[_Sdsc, _Given], _Found]:
    """Decorator: a function of a SuperDSC whose result follows from the skeleton and the other arguments.

    The result is shared, and must be immutable. A question that raises is asked again.
    """

    @wraps(question)
    def answer(op: _Sdsc, *args: _Given.args, **kwargs: _Given.kwargs) -> _Found:
        if (skeleton := skeleton_of(op)) is None:
            return question(op, *args, **kwargs)
        key = (question, args, *kwargs.items())
        if key not in skeleton.answers:
            skeleton.answers[key] = question(op, *args, **kwargs)
        return skeleton.answers[key]

    return answer


def tell(question: Callable[[_Sdsc], _Found], op: _Sdsc, answer: _Found) -> None:
    """Have a function by skeletons answer for an op, and for all of its skeleton, what is known without asking it.

    Args:
        question: decorated with `by_skeleton`, of an op alone.
        op: a ``superdsc.sdsc``.
        answer: what the function would return.
    """
    if (skeleton := skeleton_of(op)) is not None:
        skeleton.answers[cast(Any, question).__wrapped__, ()] = answer


def skeleton_of(sdsc: Operation) -> Skeleton | None:
    """Return the skeleton that SuperDSCs have in common if they differ in number and start addresses only.

    The number is the part of the symbol in front of the first underscore. Attributes of the SuperDSC itself, which
    are no part of its file, do not count; those of the ops in it do.

    Args:
        sdsc: a ``superdsc.sdsc``.

    Returns:
        The skeleton; None if an op in the SuperDSC reads values from outside, or its root key is no symbol.
    """
    if _ROOT in sdsc.properties:
        return None
    reading = _Reading(sdsc)
    if not reading.read(sdsc):
        return None
    structure, held = tuple(reading.structure), tuple(reading.held)
    known = _of_these(structure, tuple(map(id, held)))
    if not known:
        known += [_of_equal(structure, held), held]
    return cast(Skeleton, known[0])


@lru_cache(maxsize=_KEPT >> 1)
def _of_these(_structure: Hashable, _ids: tuple[int, ...]) -> list[object]:
    """The skeleton with these very attributes, and the attributes, so that no others get their ids.

    Copies share their attributes, and a number says that faster than a look into them.
    """
    return []


@lru_cache(maxsize=_KEPT)
def _of_equal(_structure: Hashable, _held: tuple[Attribute, ...]) -> Skeleton:
    return Skeleton()


class _Reading:
    """A SuperDSC as the attributes that it holds, in order, and all else that its skeleton says of it.

    Attributes:
        structure: names, numbers of operands, and where each op ends.
        held: attributes of properties, types and notes.
    """

    def __init__(self, sdsc: Operation) -> None:
        self._sdsc = sdsc
        self._values: dict[SSAValue, int] = {}
        self.structure: list[Hashable] = []
        self.held: list[Attribute] = []

    def read(self, op: Operation) -> bool:
        """Read an op and those in it; False if one reads values from outside."""
        structure, held, values = self.structure, self.held, self._values
        operands = [values.get(value) for value in op.operands]
        if None in operands:
            return False
        structure += (op.name, *operands)
        for result in op.results:
            values[result] = len(values)
            structure.append(_RESULT)
            held.append(result.type)
        for name, attribute in op.properties.items():
            structure.append(name)
            if name == _START and isinstance(attribute, DenseArrayBase):
                array = cast("DenseArrayBase[I64]", attribute)
                structure.append(len(array))
                held.append(array.elt_type)
            elif name == _NAME:
                structure.append(_function(attribute))
            else:
                held.append(attribute)
        if op is not self._sdsc:
            structure += (_NOTES, *op.attributes)
            held += op.attributes.values()
        whole = all(self.read(inner) for region in op.regions for block in region.blocks for inner in block.ops)
        structure.append(_END)
        return whole


def _function(name: Attribute) -> Hashable:
    """The name of a SuperDSC without its number."""
    text = getattr(name, "data", None)
    index, _, function = text.partition("_") if isinstance(text, str) else ("", "", "")
    return (type(name), function) if index.isdecimal() else name


__all__ = ["Skeleton", "by_skeleton", "skeleton_of", "tell"]
