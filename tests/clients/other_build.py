"""Lets torchvision load beside another build of torch, as where its wheel has CUDA and torch has not.

Its operators in C++ cannot load there, and importing it fails, because it registers shape functions for two operators
that they would have defined. Its classifiers, and what timm, transformers and diffusers take from it, need neither, so
the two are declared without implementations.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

_BEFORE, _OPERATORS = "torchvision._meta_registrations", ("nms", "qnms")
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"


class _Declares(MetaPathFinder):
    """Finds nothing; declares the operators just before the module that wants them is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == _BEFORE:
            import torch

            for name in _OPERATORS:
                if not hasattr(torch.ops.torchvision, name):
                    torch.library.define(f"torchvision::{name}", _SCHEMA)
        return None


def mend() -> None:
    """Let torchvision load whenever something imports it, if it can; nothing is imported now."""
    if not any(isinstance(finder, _Declares) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Declares())


__all__ = ["mend"]
