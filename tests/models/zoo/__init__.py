"""A zoo of 46 small models with random weights, built from shrunken configurations: nothing is downloaded."""

from __future__ import annotations

import torch

from tests.models.entry import VOCABULARY, Built, Entry
from tests.models.zoo.decoders import DECODERS
from tests.models.zoo.encoders import ENCODERS
from tests.models.zoo.functions import FUNCTIONS
from tests.models.zoo.modules import MODULES

ZOO: dict[str, Entry] = DECODERS | ENCODERS | MODULES | FUNCTIONS


def build(name: str) -> Built:
    """A model of the zoo, in evaluation mode, and example inputs; the same ones every time."""
    torch.manual_seed(0)
    model, inputs = ZOO[name].make()
    return model.eval().requires_grad_(False), inputs


__all__ = ["VOCABULARY", "ZOO", "Entry", "build"]
