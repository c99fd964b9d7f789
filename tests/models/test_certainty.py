"""What compiling relies on by default: nothing that we only inferred."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")

import spyre_mlir
from spyre_mlir.dialects.superdsc.certainty import certainty_of
from spyre_mlir.hw.certainty import Tag
from tests.models.zoo import ZOO, build

IN_EVERY_RUN = ("llama", "mlp")
CASES = [pytest.param(n, marks=() if n in IN_EVERY_RUN else pytest.mark.slow) for n in ZOO]


@pytest.mark.parametrize("name", CASES)
def test_the_default_plan_rests_on_nothing_inferred(name: str) -> None:
    model, inputs = build(name)
    compiled = spyre_mlir.compile(model, inputs)
    kernels = compiled.timeline().kernels
    assert kernels
    found = {kernel.launch.file: certainty_of(kernel.launch.descriptor) for kernel in kernels}
    assert {file: str(value) for file, value in found.items() if value.tag is Tag.INFERRED} == {}
