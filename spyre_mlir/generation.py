"""Text generation by a compiled model: what is asked for, and what one gets.

Decision: docs/decisions/0124-generate-is-transformers-own.md
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, get_args

from spyre_mlir.choices import CacheKind
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError
from spyre_mlir.text.notebook import ShownAsText


@dataclass(frozen=True, kw_only=True)
class Generation:
    """How a model is to generate.

    Attributes:
        cache: ``static`` has room for all tokens from the start, and two programs for all of them: one reads a prompt,
            one a token. ``sliding`` is the same for a model whose attention has a window, with a third program from the
            token on that fills the window. ``growing`` is as long as the text, with a program per length.
        max_length: how many tokens the cache has room for, at every call; if not said, as many as a call needs, and
            another length is another pair of programs. Not of a growing cache.

    Raises:
        InputError: there is no such cache, or it has no such length.
    """

    cache: CacheKind = "static"
    max_length: int | None = None

    def __post_init__(self) -> None:
        if self.cache not in get_args(CacheKind):
            raise InputError(f"cache must be one of {', '.join(get_args(CacheKind))}, got {self.cache!r}")
        if self.max_length is not None and self.cache == "growing":
            raise InputError("a growing cache has no max_length", hint='cache="static", or leave it out')
        if self.max_length is not None and self.max_length < 1:
            raise InputError(f"max_length must be 1 or more, got {self.max_length}")

    @property
    def grows(self) -> bool:
        """Return whether the cache is as long as the text."""
        return self.cache == "growing"


class GeneratingModel(ShownAsText, ABC):
    """A model of transformers whose `generate` runs on the hardware model.

    The cache is updated on the card and stays there; programs share the weights.
    """

    @abstractmethod
    def generate(self, *args: Any, **kwargs: Any) -> Any:
        """Return what `generate` of the model returns, with the same arguments.

        Raises:
            InputError: the tokens exceed the cache, or another kind of cache is asked for.
            UnsupportedError: beam search over a static cache.
        """

    @property
    @abstractmethod
    def prefill(self) -> Sequence[CompiledModel]:
        """The programs that read prompts, one per length of a prompt."""

    @property
    @abstractmethod
    def decode(self) -> Sequence[CompiledModel]:
        """The programs that read one token."""

    @property
    def programs(self) -> Sequence[CompiledModel]:
        """The programs compiled so far."""
        return (*self.prefill, *self.decode)

    @abstractmethod
    def to_host(self) -> None:
        """Bring the cache of the running `generate` to the host: for a streamer or a criterion that reads it."""


__all__ = ["GeneratingModel", "Generation"]
