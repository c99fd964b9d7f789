"""What a graph does to the memory of its inputs: found by running it on tensors without elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.fx import GraphModule, Interpreter

from spyre_mlir.frontend.export import NEEDS_VALUES, without_values
from spyre_mlir.frontend.torch_private import FakeTensorMode, storage_identity


@dataclass(frozen=True)
class View:
    """A result that lies in the memory of an input.

    Attributes:
        of: number of the input.
        size, stride: of the result.
        offset: elements between the start of the input and that of the result.
    """

    of: int
    size: Sequence[int]
    stride: Sequence[int]
    offset: int

    def taken(self, whole: torch.Tensor) -> torch.Tensor:
        """The view of the input itself."""
        return whole.as_strided(self.size, self.stride, whole.storage_offset() + self.offset)


@dataclass(frozen=True)
class Effects:
    """What a graph does beside computing new tensors, for inputs of one size.

    Attributes:
        writes: whether it writes to an input.
        views: results that are views of inputs, by their number.
    """

    writes: bool
    views: Mapping[int, View]

    @staticmethod
    def of(graph: GraphModule, inputs: Sequence[Any]) -> Effects:
        """Runs a graph without computing anything.

        Raises:
            UnsupportedError: what the graph does depends on the values of its inputs.
        """
        mode = FakeTensorMode(allow_non_fake_inputs=True)
        with mode:
            fakes = [_empty(x) if isinstance(x, torch.Tensor) else x for x in inputs]
            before = [_version(f) for f in fakes]
            try:
                results = cast("Callable[..., Sequence[Any]]", Interpreter(graph).run)(*fakes)
            except NEEDS_VALUES as error:
                raise without_values(error) from error
        memory = {storage_identity(f): i for i, f in enumerate(fakes) if isinstance(f, torch.Tensor)}
        views: dict[int, View] = {}
        for place, result in enumerate(results):
            if isinstance(result, torch.Tensor) and (of := memory.get(storage_identity(result))) is not None:
                views[place] = View(of, tuple(result.shape), result.stride(), int(result.storage_offset()))
        return Effects([_version(f) for f in fakes] != before, views)


def _empty(like: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device)


def _version(value: object) -> int:
    return value._version if isinstance(value, torch.Tensor) else 0  # pyright: ignore[reportPrivateUsage]
