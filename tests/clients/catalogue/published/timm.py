"""timm: models by their published names, through `create_model`."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.clients.catalogue.entry import Entry, published
from tests.models.entry import Built, image

PIXELS = 64
SMALLER = f"{PIXELS} x {PIXELS} pixels"


def _named(name: str, pixels: int = PIXELS, **options: Any) -> Built:
    import timm

    return timm.create_model(name, pretrained=False, **options), (image(pixels, images=1),)


WHOLE = (
    "resnext26ts",
    "regnetx_002",
    "fastvit_t8",
    "mobilenetv4_conv_small",
    "tf_efficientnet_lite0",
    "ghostnet_100",
    "repvgg_a0",
    "poolformer_s12",
    "convnext_atto",
    "edgenext_xx_small",
)
TIMM: dict[str, Entry] = published(
    "timm",
    {name: (SMALLER, partial(_named, name)) for name in WHOLE}
    | {
        "vit_tiny_patch16_224": ("2 of 12 layers", partial(_named, "vit_tiny_patch16_224", 224, depth=2)),
        "eva02_tiny_patch14_224": ("2 of 12 layers", partial(_named, "eva02_tiny_patch14_224", 224, depth=2)),
        "levit_128s": (f"{SMALLER}, 1 layer a stage", partial(_named, "levit_128s", img_size=PIXELS, depth=(1, 1, 1))),
    },
)
