"""Models of the zoo in device numerics, held against the emulation: torch with every result rounded to DLFloat16."""

from __future__ import annotations

import copy

import pytest
import torch

pytest.importorskip("transformers")

import spyre_mlir
from tests.models.zoo import ZOO, build
from tests.witness.dl16_emulation import double, emulate, rms_error

MARGIN = 1.5
# What the caller of these gets is bfloat16, eight bits; judged is what came from the device, before that.
HALF_PRECISION = ("llama_bf16",)


@pytest.mark.slow
@pytest.mark.parametrize("name", ZOO)
def test_errors_are_those_of_the_format(name: str) -> None:
    model, inputs = build(name)
    expected = double(copy.deepcopy(model), *copy.deepcopy(inputs))
    emulated = rms_error(emulate(copy.deepcopy(model), *copy.deepcopy(inputs)), expected)
    compiled = spyre_mlir.compile(model, inputs)
    half = name in HALF_PRECISION
    ours = compiled.accuracy(*inputs).worst if half else rms_error(compiled(*inputs), expected)
    print(f"{name}: {ours:.2e} against {emulated:.2e} of the emulation, ratio {ours / emulated:.2f}")
    assert ours <= MARGIN * emulated
    assert ours > 1e-5


def test_a_half_precision_model_is_as_good_as_its_own_format() -> None:
    """bfloat16 has fewer bits than DL16: torch's own error is the larger."""
    model, inputs = build("llama_bf16")
    expected = double(copy.deepcopy(model), *copy.deepcopy(inputs))
    with torch.no_grad():
        torch_error = rms_error(model(*inputs).double(), expected)
    ours = rms_error(spyre_mlir.compile(model, inputs)(*inputs).double(), expected)
    assert ours <= torch_error
