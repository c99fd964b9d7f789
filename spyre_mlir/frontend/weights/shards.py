"""Parts of whole tensors that one rank has: views of memory-mapped files, so that a rank reads no other's part.

Decision: docs/decisions/0157-a-rank-binds-its-part.md
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import torch

from spyre_mlir.errors import BindingError
from spyre_mlir.frontend.process_groups import rank_and_count

Part = Callable[[torch.Tensor, int, int], torch.Tensor]
Shards = Mapping[str, int | Part]


def rank_parts(tensors: Mapping[str, torch.Tensor], shards: Shards) -> dict[str, torch.Tensor]:
    """Return tensors of which this rank has its parts alone; others are whole on every rank.

    Args:
        tensors: whole ones, by the names of the model.
        shards: by name, in which ``*`` stands for anything, the dimension that is divided into equal parts in the
            order of the ranks, or a function of the tensor, the rank and the number of ranks. The first that fits
            counts.

    Raises:
        BindingError: a dimension does not exist or cannot be divided equally, or a name fits no tensor.
        InputError: this process has no process group.
    """
    rank, count = rank_and_count("binding the part of a rank")
    chosen = {name: next((p for p in shards if fnmatchcase(name, p)), None) for name in tensors}
    unused = [pattern for pattern in shards if pattern not in chosen.values()]
    problems = [f"shards: '{pattern}' fits no tensor" for pattern in unused]
    problems += [
        f"{name}: dimension {dim} of shape {list(tensors[name].shape)} has no {count} equal parts"
        for name, dim in _dimensions(chosen, shards)
        if not _divides(tensors[name].shape, dim, count)
    ]
    if problems:
        raise BindingError(
            f"the weights cannot be divided among {count} ranks\n  " + "\n  ".join(problems),
            hint="shards={'*.q_proj.weight': 0, '*.o_proj.weight': 1} names tensors and the dimension that is divided",
        )
    return {
        name: tensors[name] if pattern is None else _part(tensors[name], shards[pattern], rank, count)
        for name, pattern in chosen.items()
    }


def _dimensions(chosen: Mapping[str, str | None], shards: Shards) -> Iterable[tuple[str, int]]:
    for name, pattern in chosen.items():
        how = None if pattern is None else shards[pattern]
        if isinstance(how, int):
            yield name, how


def _divides(shape: Sequence[int], dim: int, count: int) -> bool:
    return -len(shape) <= dim < len(shape) and shape[dim] % count == 0


def _part(tensor: torch.Tensor, how: int | Part, rank: int, count: int) -> torch.Tensor:
    if not isinstance(how, int):
        return how(tensor, rank, count)
    size = tensor.shape[how] // count
    return tensor.narrow(how, rank * size, size)


__all__ = ["Part", "Shards", "rank_parts"]
