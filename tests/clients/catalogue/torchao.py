"""torchao: two linear layers, quantized by `quantize_` in every scheme for inference that the package has by name."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.clients.catalogue.entry import entries, with_random_weights
from tests.models.entry import Built


def _quantized(config: Any) -> Built:
    from torchao.quantization import quantize_

    model = with_random_weights(nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 32))).eval()
    quantize_(model, config)
    return model, (torch.randn(8, 64),)


def int8_weights() -> Built:
    from torchao.quantization import Int8WeightOnlyConfig

    return _quantized(Int8WeightOnlyConfig())


def int8_both() -> Built:
    from torchao.quantization import Int8DynamicActivationInt8WeightConfig

    return _quantized(Int8DynamicActivationInt8WeightConfig())


def float8_weights() -> Built:
    from torchao.quantization import Float8WeightOnlyConfig

    return _quantized(Float8WeightOnlyConfig())


def int4_weights() -> Built:
    from torchao.quantization import IntxWeightOnlyConfig
    from torchao.quantization.granularity import PerGroup

    return _quantized(IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)))


def int8_activations_int4_weights() -> Built:
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig
    from torchao.quantization.granularity import PerGroup

    return _quantized(Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32)))


TORCHAO = entries("torchao", int8_weights, int8_both, float8_weights, int4_weights, int8_activations_int4_weights)
