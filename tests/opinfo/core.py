"""Samples of the core ATen overloads: the calls that the database's float32 samples make of them, and some of our own.

An entry of the database is a Python function, which may stand for many overloads. So that every core overload is
tried by itself, the samples run under a dispatch mode that notes who is called with what.
"""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from tests.opinfo.own_samples import OWN
from tests.opinfo.samples import SAMPLES, SEED, Case, case_of, database, spread

PREFIX = "aten::"
DTYPE = "float32"
# Core overloads that are no part of the score, and why.
LEFT_OUT = {
    "_fft_c2r.default": "complex",
    "_fft_r2c.default": "complex",
    "nonzero.default": "the shape of the result depends on data",
    "_local_scalar_dense.default": "the result is a Python number that depends on data",
    "sym_numel.default": "asks for a size: no tensor results",
    "sym_size.int": "asks for a size: no tensor results",
    "sym_stride.int": "asks for a size: no tensor results",
    "sym_is_contiguous.default": "asks for a size: no tensor results",
    "sym_storage_offset.default": "asks for a size: no tensor results",
    "atan2.out": "writes to a tensor of the caller",
    "resize_.default": "writes to a tensor of the caller",
}
# Calls kept of one entry of the database, and bytes beyond which a call is not kept.
PER_ENTRY, LARGEST = 12, 1 << 22
UNWANTED = (torch.float64, torch.complex64, torch.complex128, torch.float16, torch.bfloat16)

Calls = dict[str, dict[str, list[tuple[Any, Any]]]]


@cache
def core_overloads() -> tuple[str, ...]:
    """Every overload of ATen with the tag `core`, as ``add.Tensor``."""
    # What `dir(torch.ops.aten)` lists grows with use; the dispatcher knows all.
    names = (n.removeprefix("aten::") for n in torch._C._dispatch_get_all_op_names() if n.startswith("aten::"))
    found = {n if "." in n else f"{n}.default" for n in names}
    return tuple(sorted(n for n in found if (o := overload(n)) is not None and torch.Tag.core in o.tags))


def overload(name: str) -> Any:
    """The overload called so, or None: the dispatcher has some that Python has not."""
    packet, _, variant = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet, None), variant, None)


class _Noting(TorchDispatchMode):
    """Keeps the arguments of calls of core overloads, by overload and by the entry that made them."""

    def __init__(self, calls: Calls, wanted: frozenset[str]) -> None:
        super().__init__()
        self.calls, self.wanted, self.entry = calls, wanted, ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = str(func).removeprefix("aten.")
        if name in self.wanted and usable(args, kwargs):
            kept = self.calls[name][self.entry]
            if len(kept) < PER_ENTRY:
                kept.append(tree_map(_copied, (args, {k: v for k, v in kwargs.items() if k != "pin_memory"})))
        return func(*args, **kwargs)


def usable(args: Any, kwargs: Any) -> bool:
    leaves = tree_leaves((args, kwargs))
    tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
    fits = all(x.dtype not in UNWANTED and x.layout is torch.strided for x in tensors)
    small = sum(x.numel() for x in tensors) * 4 <= LARGEST
    plain = not any(isinstance(x, (complex, torch.Generator)) or x in UNWANTED for x in leaves if x is not None
                    and not isinstance(x, torch.Tensor))  # fmt: skip
    return fits and small and plain


def _copied(leaf: Any) -> Any:
    if not isinstance(leaf, torch.Tensor):
        return leaf
    return torch.empty_strided(leaf.shape, leaf.stride(), dtype=leaf.dtype).copy_(leaf) if leaf.numel() else leaf


@cache
def noted_calls(entries: tuple[str, ...]) -> Calls:
    """The calls of core overloads that samples of these entries make; of all entries if none are named."""
    calls: Calls = defaultdict(lambda: defaultdict(list))
    noting = _Noting(calls, frozenset(core_overloads()))
    for name in entries or tuple(database()):
        info = database()[name]
        if torch.float32 not in info.supported_dtypes("cpu"):
            continue
        noting.entry = name
        torch.manual_seed(SEED)
        np.random.seed(SEED)
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            for sample in info.sample_inputs("cpu", torch.float32, requires_grad=False):
                try:
                    with noting:
                        info.op(sample.input, *sample.args, **sample.kwargs)
                except Exception:  # noqa: BLE001 - some samples are meant to fail
                    continue
    return calls


def core_cases(name: str, count: int = SAMPLES, entries: tuple[str, ...] = ()) -> Iterator[Case]:
    """Samples of a core overload: first of the entries of its name, then of others, then our own."""
    packet = name.partition(".")[0]
    by_entry = noted_calls(entries).get(name, {})
    of_its_name = [c for e, kept in by_entry.items() if _packet_of(e) == packet for c in kept]
    others = [c for e, kept in by_entry.items() if _packet_of(e) != packet for c in kept]
    chosen = [made() for made in OWN.get(name, ())]
    chosen += spread(of_its_name, count - len(chosen))
    chosen += spread(others, count - len(chosen))
    for number, arguments in enumerate(chosen[:count]):
        yield case_of(PREFIX + name, DTYPE, number, overload(name), arguments)


def _packet_of(entry: str) -> str:
    info = database()[entry]
    return info.aten_name or info.name.rpartition(".")[2]
