"""Steps of optimizers on the device: which operations belong to one.

Decision: docs/decisions/0151-training-is-asked-for.md
"""

from __future__ import annotations

import inspect
from importlib import import_module

import torch

_MODULE = vars(import_module("torch.optim.optimizer"))


def in_an_update() -> bool:
    """Return whether an optimizer of this thread is updating parameters, and is not in its closure."""
    if torch.is_grad_enabled():
        return False
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals is not _MODULE:
        frame = frame.f_back
    return frame is not None
