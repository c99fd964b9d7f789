"""What a graph does to memory, of its inputs and its results: found by running it on tensors without elements."""

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
class Part:
    """Where a result lies in memory that it shares with other results.

    Attributes:
        size, stride, offset: of the result, in elements.
        end: how many bytes of the memory it needs.
    """

    size: Sequence[int]
    stride: Sequence[int]
    offset: int
    end: int

    @staticmethod
    def of(result: torch.Tensor) -> Part:
        """Where a tensor lies."""
        last = sum((extent - 1) * step for extent, step in zip(result.shape, result.stride(), strict=True))
        start = int(result.storage_offset())
        end = (start + last + 1) * result.itemsize if result.numel() else 0
        return Part(tuple(result.shape), result.stride(), start, end)

    def moved(self, result: torch.Tensor, memory: torch.UntypedStorage) -> torch.Tensor:
        """The result in its place of the memory."""
        place = torch.empty(0, dtype=result.dtype).set_(memory, self.offset, self.size, self.stride)
        once = tuple(slice(0, 1) if step == 0 else slice(None) for step in self.stride)  # expanded: one element
        place[once].copy_(result[once])
        return place


@dataclass(frozen=True)
class Effects:
    """What a graph does beside computing new tensors, for inputs of one size.

    Attributes:
        writes: whether it writes to an input.
        views: results that are views of inputs, by their number.
        shared: groups of other results that share memory, by their numbers.
    """

    writes: bool
    views: Mapping[int, View]
    shared: Sequence[Mapping[int, Part]]

    def applied(self, results: Sequence[Any], inputs: Sequence[Any]) -> tuple[Any, ...]:
        """Results in the memory that the graph gives them in."""
        placed = dict(enumerate(results))
        placed |= {place: view.taken(inputs[view.of]) for place, view in self.views.items()}
        for parts in self.shared:
            memory = torch.UntypedStorage(max(part.end for part in parts.values()))
            placed |= {place: part.moved(results[place], memory) for place, part in parts.items()}
        return tuple(placed[place] for place in range(len(results)))

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
        others: dict[int, dict[int, Part]] = {}
        for place, result in enumerate(results):
            if not isinstance(result, torch.Tensor):
                continue
            if (of := memory.get(storage_identity(result))) is not None:
                views[place] = View(of, tuple(result.shape), result.stride(), int(result.storage_offset()))
            else:
                others.setdefault(storage_identity(result), {})[place] = Part.of(result)
        shared = [parts for parts in others.values() if len(parts) > 1]
        return Effects([_version(f) for f in fakes] != before, views, shared)


def _empty(like: torch.Tensor) -> torch.Tensor:
    return torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=like.device)


def _version(value: object) -> int:
    return value._version if isinstance(value, torch.Tensor) else 0  # pyright: ignore[reportPrivateUsage]
