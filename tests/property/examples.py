"""How random examples are drawn: the same ones in every run, however long one takes."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

RANDOM = st.randoms(use_true_random=False)


def examples(count: int) -> settings:
    return settings(
        max_examples=count,
        derandomize=True,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def check_part(check: Callable[[Random], None], part: int, count: int) -> None:
    """Checks `count` examples that no other part has: parts of a long run go side by side."""
    seed(part)(examples(count)(given(RANDOM)(check)))()
