"""transformers: the widths of published checkpoints."""

from __future__ import annotations

from tests.clients.catalogue.entry import Entry, published
from tests.models.entry import Built, Picked, image, token_ids

HIDDEN = "last_hidden_state"
PIXELS = 64


def bert_base() -> Built:
    from transformers import BertConfig, BertModel

    return Picked(BertModel(BertConfig(num_hidden_layers=1)), ("input_ids",), HIDDEN), (token_ids(1, 32),)


def efficientnet_b0() -> Built:
    from transformers import EfficientNetConfig, EfficientNetModel

    config = EfficientNetConfig(width_coefficient=1.0, depth_coefficient=1.0, hidden_dim=1280, image_size=PIXELS)
    return Picked(EfficientNetModel(config), ("pixel_values",), HIDDEN), (image(PIXELS, images=1),)


TRANSFORMERS: dict[str, Entry] = published(
    "transformers",
    {
        "bert_base": ("1 of 12 layers", bert_base),
        "efficientnet_b0": (f"{PIXELS} x {PIXELS} pixels", efficientnet_b0),
    },
)
