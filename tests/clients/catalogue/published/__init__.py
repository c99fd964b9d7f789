"""Models at the widths that they are published with; what is made smaller stands beside them."""

from __future__ import annotations

from tests.clients.catalogue.entry import Entry
from tests.clients.catalogue.published.diffusers import DIFFUSERS
from tests.clients.catalogue.published.timm import TIMM
from tests.clients.catalogue.published.torchvision import TORCHVISION
from tests.clients.catalogue.published.transformers import TRANSFORMERS

PUBLISHED: dict[str, Entry] = TIMM | TORCHVISION | TRANSFORMERS | DIFFUSERS

__all__ = ["PUBLISHED"]
