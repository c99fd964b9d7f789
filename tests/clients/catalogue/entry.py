"""What an entry of a catalogue is: a model of a package with random weights and example inputs, under a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import torch
from torch import nn
from torch.nn.modules.conv import _ConvNd

from tests.models.entry import Built

# The names of packages in imports, and the distributions that they come in.
DISTRIBUTIONS = {
    "fms": "ibm-fms",
    "timm": "timm",
    "torchvision": "torchvision",
    "transformers": "transformers",
    "diffusers": "diffusers",
    "torchao": "torchao",
}


@dataclass(frozen=True)
class Entry:
    """One model: the package that it comes from, and what makes it."""

    package: str
    model: str
    make: Callable[[], Built]
    smaller: str = ""  # what a model at its published widths has less of; narrow ones say nothing

    @property
    def name(self) -> str:
        """The name of the row, and the word that examines this entry."""
        return f"{self.package}/{self.model}"


class Calling(nn.Module):
    """Calls a model with fixed named arguments, and returns the tensors of what it returns that `pick` says."""

    def __init__(self, model: nn.Module, pick: Callable[[Any], Any] | None = None, **fixed: Any) -> None:
        super().__init__()
        self.model, self.pick, self.fixed = model, pick, fixed

    def forward(self, *args: Any) -> Any:
        result = self.model(*args, **self.fixed)
        return result if self.pick is None else self.pick(result)


def entries(package: str, *makers: Callable[[], Built]) -> dict[str, Entry]:
    """Entries of a package, named as the functions that make them."""
    made = [Entry(package, maker.__name__.rstrip("_"), maker) for maker in makers]
    return {entry.name: entry for entry in made}


def published(package: str, models: Mapping[str, tuple[str, Callable[[], Built]]]) -> dict[str, Entry]:
    """Entries of models at their published widths, each with what is made smaller, and what makes it."""
    made = [Entry(package, model, make, smaller) for model, (smaller, make) in models.items()]
    return {entry.name: entry for entry in made}


def version_of(package: str) -> str:
    """The version that is installed; "" if the package is absent."""
    try:
        return metadata.version(DISTRIBUTIONS[package])
    except metadata.PackageNotFoundError:
        return ""


@torch.no_grad()
def with_random_weights(model: nn.Module) -> nn.Module:
    """The model with values in every weight that matter to its results.

    What packages initialise with hides mistakes: scales of zero or 1e-5 switch branches off, biases are zero, and
    normalisations over running statistics do nothing. Weights of subclasses (quantized ones) stay as they are.
    """
    done: set[int] = set()
    for module in model.modules():
        for name, weight in module.named_parameters(recurse=False):
            if type(weight) is nn.Parameter and weight.is_floating_point() and id(weight) not in done:
                done.add(id(weight))
                _fill(module, name, weight)
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is not None:
            assert module.running_var is not None
            module.running_mean.normal_(0.0, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    return model


def _fill(module: nn.Module, name: str, weight: nn.Parameter) -> None:
    if weight.dim() > 1:
        summed = weight[0].numel() if isinstance(module, _ConvNd) else weight.shape[-1]
        weight.normal_(0.0, summed**-0.5)
    else:
        weight.normal_(0.0 if "bias" in name else 1.0, 0.1)
