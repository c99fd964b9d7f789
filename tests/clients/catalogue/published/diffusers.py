"""diffusers: the widths of published checkpoints."""

from __future__ import annotations

import torch

from tests.clients.catalogue.entry import Entry, published
from tests.models.entry import Built, Picked


def dit_xl_2() -> Built:
    from diffusers import DiTTransformer2DModel

    model = DiTTransformer2DModel(16, 72, 4, 8, num_layers=1, sample_size=16)
    states = (torch.randn(1, 4, 16, 16), torch.tensor([500]), torch.tensor([3]))
    return Picked(model, ("hidden_states", "timestep", "class_labels"), "sample"), states


DIFFUSERS: dict[str, Entry] = published("diffusers", {"dit_xl_2": ("1 of 28 layers, latents of 16 x 16", dit_xl_2)})
