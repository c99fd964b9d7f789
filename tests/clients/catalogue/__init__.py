"""Models of the packages that users of Spyre run, made with their public API: small, and nothing is downloaded."""

from __future__ import annotations

import torch

from tests.clients.catalogue.diffusers import DIFFUSERS
from tests.clients.catalogue.entry import DISTRIBUTIONS, Entry, version_of, with_random_weights
from tests.clients.catalogue.fms import FMS
from tests.clients.catalogue.fms_steps import FMS_STEPS
from tests.clients.catalogue.published import PUBLISHED
from tests.clients.catalogue.timm import TIMM
from tests.clients.catalogue.torchao import TORCHAO
from tests.clients.catalogue.torchvision import TORCHVISION
from tests.clients.catalogue.transformers import TRANSFORMERS
from tests.clients.other_build import mend
from tests.models.entry import Built

CATALOGUE: dict[str, Entry] = FMS | FMS_STEPS | TIMM | TORCHVISION | TRANSFORMERS | DIFFUSERS | TORCHAO | PUBLISHED


def build(name: str) -> Built:
    """A model, in evaluation mode, and example inputs; the same ones every time."""
    mend()
    torch.manual_seed(0)
    model, inputs = CATALOGUE[name].make()
    return with_random_weights(model).eval().requires_grad_(False), inputs


__all__ = ["CATALOGUE", "DISTRIBUTIONS", "Entry", "build", "version_of"]
