"""What every element of a bundle's result is computed from, as a number per expression.

Each byte of memory holds the number of the expression that its element is: inputs have numbers of their own, and an
operation's element has one that follows from the operation and from the numbers of the elements it reads. A sum, a
maximum or a product of matrices adds up the numbers along what it reduces, so that their order does not count. Two
bundles whose results have equal numbers compute the same expressions of the same inputs, wherever and whenever they do
it: they are equivalent, whatever the inputs are (but for a clash of 64-bit numbers).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, IndirectKind
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.memory.operand_views import OperandLayout, slice_table

Numbers = NDArray[np.uint64]
COMMUTES = frozenset({"add", "mul", "maximum", "minimum"})
HALF = 2
_CORE = 1 << 40


def number_of(text: str) -> np.uint64:
    """The number of a text."""
    return np.uint64(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little"))


def mixed(numbers: Numbers, salt: np.uint64) -> Numbers:
    """Other numbers, as good as drawn at random."""
    with np.errstate(over="ignore"):
        x = (numbers ^ salt) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
        return x ^ (x >> np.uint64(32))


class Store:
    """Numbers by address, in pages of one argument, pool or scratchpad."""

    def __init__(self) -> None:
        self.pages: dict[int, Numbers] = {}

    def _page(self, number: int, size: int) -> Numbers:
        page = self.pages.get(number, np.zeros(0, np.uint64))
        if len(page) < size:
            more = np.arange(len(page), max(size, 2 * len(page), 4096), dtype=np.uint64)
            page = np.concatenate([page, mixed(more, number_of(f"page {number}"))])
            self.pages[number] = page
        return page

    def cells(self, addresses: NDArray[np.int64]) -> tuple[Numbers, NDArray[np.int64]]:
        """The page that addresses lie in, and where in it."""
        number = int(addresses.min()) // _CORE
        at = (addresses - number * _CORE) // HALF
        return self._page(number, int(at.max()) + 1), at


def signature(view: Descriptor) -> str:
    """What an operation computes, wherever its operands are."""
    dims = [(d.label, d.extent, d.valid) for d in view.dims if d.valid is not None]
    formats = [(o.format, None if o.indirect is None else o.indirect.kind) for o in view.operands]
    return repr((view.op_func, view.constants, view.mask_constant, view.op_format, view.windows, dims, formats))


def run(view: Descriptor, starts: Sequence[Sequence[int]], store: Store) -> None:
    """One launch.

    Args:
        view: what its file says.
        starts: per operand and core, the address in the store.
        store: read and written.
    """
    slices = slice_table(view)
    memory = ExactMemory()
    operands = [replace(o, start=tuple("0" for _ in o.start), symbolic=False) for o in view.operands]
    plain = replace(view, operands=tuple(operands))
    layouts = [OperandLayout(plain, n, memory) for n in range(len(operands))]
    made: list[tuple[NDArray[np.int64], Numbers]] = []
    for core in range(len(slices)):
        reached = [
            layout.core(core).addresses() + (start[core] - int(layout.starts[core]))
            for layout, start in zip(layouts, starts, strict=True)
        ]
        parts: list[Numbers] = []
        for number, addresses in enumerate(reached[:-1]):
            link = view.operands[number].indirect
            if link is not None and link.kind is IndirectKind.VALUE:
                # Which row is read depends on the index; the column does not.
                cells = mixed(addresses.astype(np.uint64), number_of("row"))
            else:
                page, at = store.cells(addresses)
                cells = page[at]
            order = "" if view.op_func in COMMUTES else str(number)
            parts.append(mixed(cells, number_of(f"{signature(view)} {order}")))
        total = parts[0]
        with np.errstate(over="ignore"):
            for part in parts[1:]:
                total = total + part
        total = mixed(total, number_of("element"))
        target = reached[-1]
        lost = tuple(n for n, size in enumerate(target.shape) if size == 1 and total.shape[n] > 1)
        total = total.sum(axis=lost, keepdims=True, dtype=np.uint64)
        made.append((target, np.broadcast_to(total, np.broadcast_shapes(total.shape, target.shape))))
    _write(store, made)


def _write(store: Store, made: Sequence[tuple[NDArray[np.int64], Numbers]]) -> None:
    sums: dict[int, tuple[Numbers, NDArray[np.bool_]]] = {}
    for target, total in made:
        page, at = store.cells(target)
        number = int(target.min()) // _CORE
        fresh, seen = sums.get(number, (np.zeros(0, np.uint64), np.zeros(0, np.bool_)))
        if len(fresh) < len(page):
            fresh = np.concatenate([fresh, np.zeros(len(page) - len(fresh), np.uint64)])
            seen = np.concatenate([seen, np.zeros(len(page) - len(seen), np.bool_)])
        with np.errstate(over="ignore"):
            # Cores that add up one result meet in the same cells.
            np.add.at(fresh, at.reshape(-1), total.reshape(-1))
        seen[at.reshape(-1)] = True
        sums[number] = (fresh, seen)
    for number, (fresh, seen) in sums.items():
        page = store.pages[number]
        page[: len(fresh)][seen[: len(page)]] = mixed(fresh[seen], number_of("result"))


def base_numbers(bases: Sequence[str]) -> Mapping[str, int]:
    """The page of every argument and of the pool; scratchpads come after them."""
    return {base: number for number, base in enumerate(sorted(bases))}


def address(base: str, offset: int, core: int, pages: Mapping[str, int]) -> int:
    """Where a place is in the store."""
    return (pages[base] if base in pages else len(pages) + core) * _CORE + offset


Loader = Callable[[str], Descriptor]

__all__ = ["Loader", "Store", "address", "base_numbers", "mixed", "number_of", "run", "signature"]
