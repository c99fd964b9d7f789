"""Random numbers in runs that are compared: each run draws the numbers that eager would, and torch's generator stays.

Decision: docs/decisions/0136-random-numbers-are-eagers.md
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
from typing_extensions import override

from spyre_mlir.frontend.reference.operator_mode import OperatorMode
from spyre_mlir.frontend.torch_private import Operator, schema_of


@contextmanager
def generator_kept() -> Generator[None]:
    """Leave torch's generator as it was, whatever is drawn inside the block."""
    before = torch.get_rng_state()
    try:
        yield
    finally:
        torch.set_rng_state(before)


def seed_generator(seed: int) -> None:
    """Start torch's generator anew."""
    cast(Any, torch).manual_seed(seed)


class _Recorded(OperatorMode):
    """Torch mode that keeps what is drawn."""

    def __init__(self) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] # untyped in torch
        self.drawn: list[torch.Tensor] = []

    @override
    def run(self, func: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Runs one operator."""
        result = func(*args, **kwargs)
        if torch.Tag.nondeterministic_seeded in func.tags and isinstance(result, torch.Tensor):
            self.drawn.append(result.detach().clone())
        return result


class Replayed(OperatorMode):
    """Torch mode in which what draws gives the numbers that another run drew, floats in double precision.

    Args:
        drawn: the numbers, in order.
    """

    def __init__(self, drawn: Sequence[torch.Tensor]) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] # untyped in torch
        self._next: Iterator[torch.Tensor] = iter(drawn)

    @override
    def run(self, func: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Runs one operator, unless it draws."""
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        drawn = next(self._next)
        if schema_of(func).is_mutable:
            return args[0].copy_(drawn)
        return drawn.double() if drawn.is_floating_point() else drawn


def drawn_by(run: Callable[[], object]) -> list[torch.Tensor]:
    """Return the numbers that a function draws, in order; torch's generator stays."""
    with generator_kept(), torch.no_grad(), _Recorded() as recorded:
        run()
    return recorded.drawn
