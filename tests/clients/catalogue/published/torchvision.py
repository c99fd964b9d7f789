"""torchvision: classifiers by their published names, with pictures of 64 by 64 pixels."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.clients.catalogue.entry import Entry, published
from tests.models.entry import Built, image

PIXELS = 64
SMALLER = f"{PIXELS} x {PIXELS} pixels"


def _named(name: str, **options: Any) -> Built:
    from torchvision import models

    return getattr(models, name)(weights=None, **options), (image(PIXELS, images=1),)


def densenet121() -> Built:
    from torchvision.models import DenseNet

    return DenseNet(32, (3, 3), 64), (image(PIXELS, images=1),)


def vit_b_16() -> Built:
    from torchvision.models import VisionTransformer

    return VisionTransformer(PIXELS, 16, 2, 12, 768, 3072), (image(PIXELS, images=1),)


def convnext_tiny() -> Built:
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    stages = [CNBlockConfig(96, 192, 1), CNBlockConfig(192, 384, 1), CNBlockConfig(384, 768, 1)]
    return ConvNeXt([*stages, CNBlockConfig(768, None, 1)]), (image(PIXELS, images=1),)


def googlenet() -> Built:
    return _named("googlenet", init_weights=False, aux_logits=False)


WHOLE = (
    "resnet18",
    "resnext50_32x4d",
    "mobilenet_v2",
    "mobilenet_v3_small",
    "efficientnet_b0",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
    "regnet_y_400mf",
    "mnasnet0_5",
)
TORCHVISION: dict[str, Entry] = published(
    "torchvision",
    {name: (SMALLER, partial(_named, name)) for name in WHOLE}
    | {
        "googlenet": (SMALLER, googlenet),
        "densenet121": (f"{SMALLER}, 2 of 4 blocks, 3 layers each", densenet121),
        "vit_b_16": (f"{SMALLER}, 2 of 12 layers", vit_b_16),
        "convnext_tiny": (f"{SMALLER}, 1 layer a stage", convnext_tiny),
    },
)
