"""What compiling relies on by default: nothing that we only inferred."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")

from tests.models.examine import examined
from tests.models.zoo import ZOO

IN_EVERY_RUN = ("mlp",)
CASES = [
    pytest.param(n, marks=() if n in IN_EVERY_RUN else pytest.mark.slow(reason="the suite models runs the whole zoo"))
    for n in ZOO
]


@pytest.mark.parametrize("name", CASES)
def test_the_default_plan_rests_on_nothing_inferred(name: str) -> None:
    found = examined(name)
    assert sum(found.kernels.values()) > 0
    assert found.inferred == {}
