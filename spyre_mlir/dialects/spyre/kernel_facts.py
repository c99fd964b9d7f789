"""Facts about a kernel, computed once per distinct kernel.

Layers of a model repeat the same few hundred kernels, and verifiers, passes and the machine ask each of them for its
walks and slices again and again. Ops that agree in all that the answers follow from share the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

_HELD = "_facts"
_UNDIVIDED = "undivided"


class Factual(Protocol):
    """An object with cached facts."""

    def identity(self) -> Hashable:
        """The value that all facts depend on."""
        ...

    def undivided_identity(self) -> Hashable:
        """The value that those facts depend on that are the same under every division of the work."""
        ...


_Subject = TypeVar("_Subject", bound=Factual)
_Asked = ParamSpec("_Asked")
_Told = TypeVar("_Told")


@lru_cache(maxsize=1 << 11)
def _facts_about(_identity: Hashable) -> dict[Hashable, Any]:
    """The answers so far, by question and arguments."""
    return {}


def _facts_of(subject: Factual) -> dict[Hashable, Any]:
    """The answers about an object: held by it as long as its identity is the same, so that this is not hashed again."""
    identity, holder = subject.identity(), vars(subject)
    held = holder.get(_HELD)
    if held is None or held[0] != identity:
        holder[_HELD] = held = identity, _facts_about(identity)
    return held[1]


def _undivided_facts_of(subject: Factual) -> dict[Hashable, Any]:
    """The answers so far that hold under every division."""
    facts = _facts_of(subject)
    if _UNDIVIDED not in facts:
        facts[_UNDIVIDED] = _facts_about((_UNDIVIDED, subject.undivided_identity()))
    return facts[_UNDIVIDED]


def fact(question: Callable[Concatenate[_Subject, _Asked], _Told]) -> Callable[Concatenate[_Subject, _Asked], _Told]:
    """Decorator: a method whose result depends only on the object's identity and the arguments.

    The answer must be immutable, as it is shared. A question that raises is asked again.
    """

    @wraps(question)
    def answer(self: _Subject, *args: _Asked.args, **kwargs: _Asked.kwargs) -> _Told:
        facts, key = _facts_of(self), (question, args, *kwargs.items())
        if key not in facts:
            facts[key] = question(self, *args, **kwargs)
        return facts[key]

    return answer


def undivided_fact(
    question: Callable[Concatenate[_Subject, _Asked], _Told],
) -> Callable[Concatenate[_Subject, _Asked], _Told]:
    """Decorator: a fact that is the same however the work is divided over the cores."""

    @wraps(question)
    def answer(self: _Subject, *args: _Asked.args, **kwargs: _Asked.kwargs) -> _Told:
        facts, key = _undivided_facts_of(self), (question, args, *kwargs.items())
        if key not in facts:
            facts[key] = question(self, *args, **kwargs)
        return facts[key]

    return answer
