"""Samples of PyTorch's OpInfo database as modules whose inputs are the tensors of the sample."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

import numpy as np
import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

DTYPES = {"float32": torch.float32, "float16": torch.float16, "int64": torch.int64, "bool": torch.bool}
SAMPLES = 10
T = TypeVar("T")
SEED = 0
# A DL16 number has nine fraction bits, and torch's float16 can hold it too.
KEPT_BITS = 9


class SampleModel(torch.nn.Module):
    """One sample as a model: its tensors are the inputs, and numbers, lists and names are part of it."""

    def __init__(self, op: Any, structure: Any, leaves: Sequence[object]) -> None:
        super().__init__()
        self.op, self.structure = op, structure
        self.fixed = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.places = [n for n, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def forward(self, *tensors: torch.Tensor) -> Any:
        leaves = list(self.fixed)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = tree_unflatten(leaves, self.structure)
        return tuple(tree_flatten(self.op(*args, **kwargs))[0])


@dataclass(frozen=True)
class Case:
    """One sample of one op at one dtype."""

    op: str
    dtype: str
    number: int
    model: SampleModel
    inputs: tuple[torch.Tensor, ...]

    def fresh(self) -> list[torch.Tensor]:
        """Copies of the inputs: some ops write to them."""
        return [x.clone() for x in self.inputs]

    @property
    def base(self) -> str:
        """The function's name, without namespace and variant."""
        return re.sub(r"^(aten::|nn\.functional\.|torch\.ops\.aten\.)", "", self.op).partition(".")[0]

    @property
    def key(self) -> str:
        return f"{self.op}/{self.dtype}/{self.number}"

    def __str__(self) -> str:
        fixed = [leaf for leaf in self.model.fixed if leaf is not None]
        shapes = ", ".join(f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}" for x in self.inputs)
        return f"{shapes}{f' with {fixed}' if fixed else ''}"


@cache
def database() -> dict[str, Any]:
    """OpInfo entries by name; a variant's name follows a dot, as in ``div.floor_rounding``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal import common_methods_invocations
    # Seeds inside of an op, so that every call draws the same: no graph shows that, and the judge seeds.
    common_methods_invocations.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)
    op_db = common_methods_invocations.op_db
    return {full_name(info): info for info in op_db}


def full_name(info: Any) -> str:
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name


def named(pattern: str) -> list[str]:
    """The entries of this name, with all variants, with or without their namespace."""
    known = database()
    if pattern in known and f"{pattern}." not in " ".join(known):
        return [pattern]
    wanted = (pattern, f"nn.functional.{pattern}", f"torch.ops.aten.{pattern}", f"special.{pattern}")
    return [name for name, info in known.items() if name == pattern or info.name in wanted or info.aten_name == pattern]


def cases(name: str, dtype: str, count: int = SAMPLES) -> Iterator[Case]:
    """Samples of an entry, spread evenly over all that it has at this dtype; none if torch does not support it."""
    info = database()[name]
    if DTYPES[dtype] not in info.supported_dtypes("cpu"):
        return
    torch.manual_seed(SEED)
    np.random.seed(SEED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        samples = list(info.sample_inputs("cpu", DTYPES[dtype], requires_grad=False))
    for number, sample in spread(list(enumerate(samples)), count):
        yield case_of(name, dtype, number, info.op, ((sample.input, *sample.args), dict(sample.kwargs)))


def spread(things: Sequence[T], count: int) -> list[T]:
    """At most `count` of these, evenly spread, the first and the last among them."""
    if len(things) <= count or count < 2:
        return list(things[: max(count, 0)])
    return [things[round(n * (len(things) - 1) / (count - 1))] for n in range(count)]


def case_of(name: str, dtype: str, number: int, op: Any, arguments: Any) -> Case:
    leaves, structure = tree_flatten(arguments)
    inputs = tuple(representable(x) for x in leaves if isinstance(x, torch.Tensor))
    return Case(name, dtype, number, SampleModel(op, structure, leaves), inputs)


def representable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with numbers that DL16 holds, cut towards zero: so none leaves the domain of its op."""
    if tensor.dtype not in (torch.float32, torch.float16) or tensor.layout is not torch.strided:
        return tensor.detach()
    fraction, exponent = torch.frexp(tensor.detach().double())
    cut = torch.ldexp(torch.trunc(fraction * 2 ** (KEPT_BITS + 1)), exponent - KEPT_BITS - 1)
    wanted = torch.where(torch.isfinite(tensor), cut, tensor.double()).to(tensor.dtype)
    if tensor.numel() == 0 or tensor.is_contiguous():
        return wanted.contiguous() if tensor.is_contiguous() else wanted
    return tensor.detach().clone(memory_format=torch.preserve_format).copy_(wanted)
