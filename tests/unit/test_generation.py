"""What may be asked for of generation."""

from __future__ import annotations

from typing import Any

import pytest

from spyre_mlir.errors import InputError
from spyre_mlir.generation import GeneratingModel, Generation


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"cache": "dynamic"}, "cache must be one of static, sliding, growing, got 'dynamic'"),
        ({"cache": "growing", "max_length": 4}, "a growing cache has no max_length"),
        ({"max_length": 0}, "max_length must be 1 or more, got 0"),
    ],
)
def test_refusals(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Generation(**asked)


def test_kinds() -> None:
    assert [Generation(cache=kind).grows for kind in ("static", "sliding", "growing")] == [False, False, True]


def test_programs_are_those_of_both_steps() -> None:
    class Made(GeneratingModel):
        prefill, decode = ("a",), ("b", "c")  # type: ignore[assignment]

        def generate(self, *args: Any, **kwargs: Any) -> None: ...

        def to_host(self) -> None: ...

    assert Made().programs == ("a", "b", "c")
