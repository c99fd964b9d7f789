"""timm: models by their published names, through `create_model`."""

from __future__ import annotations

from functools import partial
from typing import Any

from tests.clients.catalogue.entry import Entry, published
from tests.models.entry import Built, image

PIXELS = 224


def _named(name: str, **options: Any) -> Built:
    import timm

    return timm.create_model(name, pretrained=False, **options), (image(PIXELS, images=1),)


def _shallow(name: str) -> tuple[str, partial[Built]]:
    return "2 of 12 layers", partial(_named, name, depth=2)


TIMM: dict[str, Entry] = published(
    "timm", {name: _shallow(name) for name in ("vit_tiny_patch16_224", "eva02_tiny_patch14_224")}
)
