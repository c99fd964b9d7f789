"""Models in half precision, in device numerics."""

from __future__ import annotations

import copy

import pytest
import torch

pytest.importorskip("transformers")

import spyre_mlir
from tests.models.zoo import build
from tests.oracles.dl16_emulation import double, rms_error


@pytest.mark.slow(reason="compiles a Llama in bfloat16")
def test_a_half_precision_model_is_as_good_as_its_own_format() -> None:
    """bfloat16 has fewer bits than DL16: torch's own error is the larger."""
    model, inputs = build("llama_bf16")
    expected = double(copy.deepcopy(model), *copy.deepcopy(inputs))
    with torch.no_grad():
        torch_error = rms_error(model(*inputs).double(), expected)
    ours = rms_error(spyre_mlir.compile(model, inputs)(*inputs).double(), expected)
    assert ours <= torch_error
