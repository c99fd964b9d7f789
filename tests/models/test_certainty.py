"""What compiling relies on by default: nothing that we only inferred."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")

import spyre_mlir
from spyre_mlir.hw.certainty import Tag
from spyre_mlir.pipeline import certainties
from tests.models.zoo import ZOO, build

IN_EVERY_RUN = ("llama", "mlp")
CASES = [pytest.param(n, marks=() if n in IN_EVERY_RUN else pytest.mark.slow) for n in ZOO]


@pytest.mark.parametrize("name", CASES)
def test_the_default_plan_rests_on_nothing_inferred(name: str) -> None:
    model, inputs = build(name)
    compiled = spyre_mlir.compile(model, inputs)
    found = certainties(compiled._lowered.modules["superdsc"])
    assert found
    assert {key: str(value) for key, value in found.items() if value.tag is Tag.INFERRED} == {}
