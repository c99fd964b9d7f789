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


def vit_b_16() -> Built:
    from torchvision.models import VisionTransformer

    return VisionTransformer(PIXELS, 16, 2, 12, 768, 3072), (image(PIXELS, images=1),)


TORCHVISION: dict[str, Entry] = published(
    "torchvision",
    {name: (SMALLER, partial(_named, name)) for name in ("resnext50_32x4d", "regnet_y_400mf")}
    | {"vit_b_16": (f"{SMALLER}, 2 of 12 layers", vit_b_16)},
)
