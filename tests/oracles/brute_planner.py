"""The quickest plan of a graph of at most three kernels, found by trying every one.

Written from the rules of the machine: what may be divided, which slice each core holds, what a scratchpad holds, and
the published times of the engines (torch-spyre: cost_model.py, work_division.py, issue 4690). Nothing is left out
because it looks slow.

Tensors have rows and columns, 64 columns to a stick of 128 bytes; a tensor of one column has a stick per row. All
plans without loops: the division of each kernel, and the tensors in the scratchpads, copies of inputs among them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise, product
from math import exp, inf, log2, prod

CORES, STICK, LX = 32, 128, 1_589_376
HBM, TURNAROUND = 150.0, 0.00574  # bytes per nanosecond; nanoseconds per byte that alternates
SFU, PE, LX_RATE = 70.4, 1140.0, 547.0  # elements, multiply-adds, bytes per nanosecond and core
SHARES = ((1, 0.11), (2, 0.22), (4, 0.43), (8, 0.54), (16, 0.54), (32, 1.0))


@dataclass(frozen=True)
class Tensor:
    """Rows, and columns; one column is a sparse tensor."""

    rows: int
    columns: int

    @property
    def sticks(self) -> int:
        """Sticks of a row."""
        return -(-self.columns // 64)

    @property
    def bytes(self) -> int:
        """Bytes with padding."""
        return self.rows * self.sticks * STICK


@dataclass(frozen=True)
class Node:
    """A kernel: `pointwise`, `reduction` of every row to one number, or `product`; tensors by number, result last."""

    kind: str
    reads: tuple[int, ...]
    writes: int


@dataclass(frozen=True)
class Graph:
    """Kernels in order, and their tensors; those that no kernel writes are sent by the host."""

    nodes: tuple[Node, ...]
    tensors: tuple[Tensor, ...]

    @cached_property
    def made(self) -> frozenset[int]:
        """Tensors that kernels write."""
        return frozenset(node.writes for node in self.nodes)

    @cached_property
    def inner(self) -> frozenset[int]:
        """Tensors that kernels write and read; the host takes the others."""
        return self.made & {t for node in self.nodes for t in node.reads}

    @cached_property
    def shared(self) -> frozenset[int]:
        """Tensors that several kernels read, from the host or from a kernel: copies of them may be held."""
        reads = [t for node in self.nodes for t in set(node.reads)]
        return frozenset(t for t in reads if reads.count(t) > 1)


# Numberings of the cores of a division: the loop that varies fastest first.
ORDERS = (("sum", "rows", "columns"), ("sum", "columns", "rows"))

Splits = Mapping[str, int]
Slices = tuple[tuple[int, int], ...]  # per core, the slice of rows and of columns


def loops(graph: Graph, node: Node) -> dict[str, int]:
    """Pieces of every loop that may be divided: rows, sticks of columns, and sticks of a product's sum."""
    out = graph.tensors[node.writes]
    found = {"rows": out.rows, "columns": out.sticks if node.kind != "reduction" else 1}
    return found | ({"sum": graph.tensors[node.reads[0]].sticks} if node.kind == "product" else {})


def divisions(graph: Graph, node: Node) -> Iterator[dict[str, int]]:
    """Every division into equal slices on the cores."""
    names, pieces = zip(*loops(graph, node).items(), strict=True)
    for splits in product(*([d for d in range(1, CORES + 1) if n % d == 0] for n in pieces)):
        if prod(splits) <= CORES:
            yield dict(zip(names, splits, strict=True))


def default_cores(graph: Graph, node: Node) -> int:
    """Cores of torch-spyre's default division: the longest loop of the result first, then the sum."""
    cores, pieces = 1, loops(graph, node)
    for name in sorted(pieces, key=lambda name: (name == "sum", -pieces[name])):
        cores *= max(d for d in range(1, CORES // cores + 1) if pieces[name] % d == 0)
    return cores


def walked(node: Node, place: int, tensor: Tensor) -> tuple[str | None, str | None]:
    """The loops along rows and columns of an operand, the result at the last place; None where it has one element."""
    if node.kind == "product" and place < 2:
        return ("rows", "sum") if place == 0 else ("sum", "columns")
    whole = node.kind == "reduction" or tensor.columns == 1
    return "rows", None if whole else "columns"


def slices(node: Node, splits: Splits, order: Sequence[str], place: int, tensor: Tensor) -> Slices | None:
    """Per core its slice of an operand; None if several cores would need the same elements.

    The first loop of the order varies fastest over the cores.
    """
    own = walked(node, place, tensor)
    if any(n > 1 and name not in own for name, n in splits.items()):
        return None
    order = [name for name in order if name in splits]
    found: list[tuple[int, int]] = []
    for core in range(prod(splits.values())):
        row, rest = dict[str, int](), core
        for name in order:
            rest, row[name] = divmod(rest, splits[name])
        found.append((row[own[0]] if own[0] else 0, row[own[1]] if own[1] else 0))
    return tuple(found)


def share(cores: int) -> float:
    """The part of the memory's rate that so many cores reach."""
    for (low, part), (high, following) in pairwise(SHARES):
        if cores <= high:
            return part + (following - part) * max(0.0, log2(cores / low) / log2(high / low))
    return 1.0


def node_us(graph: Graph, node: Node, splits: Splits, local: frozenset[int]) -> float:
    """Microseconds of a kernel, with these of its places in the scratchpads."""
    cores, places = prod(splits.values()), [*node.reads, node.writes]
    tensors = [graph.tensors[t] for t in places]
    parts = [prod(splits.get(name, 1) for name in walked(node, n, t) if name) for n, t in enumerate(tensors)]
    outside = [n for n in range(len(places)) if n not in local]
    lx = sum(tensors[n].bytes // parts[n] for n in local) / LX_RATE
    if node.kind == "product":
        return max(_product_ns(graph, node, splits), lx, _streamed(tensors, parts, outside, cores)) / 1000 + (
            _reread_ns(graph, node, splits) / 1000
        )
    source = tensors[0]
    elements = (
        source.rows * source.sticks * 64
        if node.kind == "reduction"
        else tensors[-1].rows * (tensors[-1].sticks * 64 if tensors[-1].columns > 1 else 1)
    )
    return max(elements / cores / SFU, lx, _accessed(node, tensors, parts, outside, cores)) / 1000


def _accessed(node: Node, tensors: Sequence[Tensor], parts: Sequence[int], outside: Sequence[int], cores: int) -> float:
    """Nanoseconds of the memory for a kernel without products, by its kind of access."""
    moved = sum(tensors[n].bytes for n in outside)
    if not moved:
        return 0.0
    if node.kind == "reduction":
        rate = min(HBM, 114 + 61 * exp(-tensors[-1].rows / 3700)) * share(cores)
        return moved / rate
    small = {tensors[n].columns < tensors[-1].columns for n in outside if n < len(tensors) - 1}
    if small == {True, False}:
        return moved / (118 * share(cores))
    return _streamed(tensors, parts, outside, cores)


def _streamed(tensors: Sequence[Tensor], parts: Sequence[int], outside: Sequence[int], cores: int) -> float:
    """Nanoseconds of the memory where each operand is loaded once and delivered to the cores that read it."""
    read = [n for n in outside if n < len(tensors) - 1]
    written = sum(tensors[n].bytes for n in outside if n == len(tensors) - 1)
    delivered = sum(tensors[n].bytes * max(1.0, cores / parts[n] / 8) ** 0.75 for n in read) + written
    turns = TURNAROUND * min(sum(tensors[n].bytes for n in read), written)
    return (delivered / HBM + turns) / share(cores)


def _product_ns(graph: Graph, node: Node, splits: Splits) -> float:
    """Nanoseconds of the PE arrays, or of partial sums on the ring if they take longer."""
    left, out = graph.tensors[node.reads[0]], graph.tensors[node.writes]
    rows, columns, depth = out.rows, out.sticks * 64, left.sticks * 64
    fill = min(1.0, (rows / splits["rows"] / 64) ** 0.35)
    slow = 2.0 if splits["sum"] > 1 else 1.0
    arithmetic = slow * rows * columns * depth / prod(splits.values()) / (PE * fill)
    return max(arithmetic, (splits["sum"] - 1) * rows * columns / splits["rows"] / splits["columns"] * 0.14)


def _reread_ns(graph: Graph, node: Node, splits: Splits) -> float:
    """Nanoseconds of operands that are read again, as a core's tile is large."""
    out = graph.tensors[node.writes]
    rows, columns = out.rows, out.sticks * 64
    m, n = splits["rows"], splits["columns"]
    excess = max(0.0, rows / m * columns / n - 131072)
    long, short = (m, n) if rows >= columns else (n, m)
    return excess * (2.62 * max(0.0, log2(long / 8)) + 2.88 * max(0.0, log2(short / 16)))


@dataclass(frozen=True)
class Plan:
    """A plan: its time, divisions by kernel, and tensors in the scratchpads."""

    us: float
    splits: tuple[Mapping[str, int], ...]
    local: frozenset[int]


class Way:
    """One division of a kernel: the slices of its operands, and its time for every choice of local ones."""

    def __init__(self, graph: Graph, node: Node, splits: Splits, order: Sequence[str]) -> None:
        self.splits, self.places = splits, (*node.reads, node.writes)
        self.views = tuple(slices(node, splits, order, n, graph.tensors[t]) for n, t in enumerate(self.places))
        everything = range(len(self.places))
        subsets = (frozenset(c) for n in range(len(self.places) + 1) for c in combinations(everything, n))
        self.us = {local: node_us(graph, node, splits, local) for local in subsets}


Held = Mapping[int, tuple[Slices, bool]]  # by tensor, the slices that the scratchpads hold, and whether of a copy


def best_plan(graph: Graph, busy: float = 0.0) -> Plan:
    """Return the quickest plan in which each product has so large a part of the cores of its default division."""
    best = Plan(inf, (), frozenset())
    ways: list[list[Way]] = []
    for node in graph.nodes:
        least = int(busy * default_cores(graph, node)) if node.kind == "product" else 1
        found = [s for s in divisions(graph, node) if prod(s.values()) >= least]
        ways.append(
            [Way(graph, node, s, order) for s in found for order in ORDERS[: 2 if node.kind == "product" else 1]]
        )
    for chosen in product(*ways):
        for held in _choices(graph, chosen):
            us = _plan_us(graph, chosen, held)
            if us < best.us and _fits(graph, chosen, held):
                best = Plan(us, tuple(way.splits for way in chosen), frozenset(held))
    return best


def _choices(graph: Graph, chosen: Sequence[Way]) -> Iterator[Held]:
    """Every choice of tensors in the scratchpads, with slices: those that all kernels see, or for copies several."""
    options: list[list[tuple[int, tuple[Slices, bool] | None]]] = []
    for t in sorted(graph.inner | graph.shared):
        read = [view for way in chosen for place, view in zip(way.places[:-1], way.views, strict=False) if place == t]
        made = [way.views[-1] for way in chosen if way.places[-1] == t]
        whole = set(made) if t in graph.made and set(read) == set(made) else set[Slices | None]()
        copies = {view for view in read if read.count(view) > 1} - whole
        found = [(view, False) for view in whole] + [(view, True) for view in copies]
        options.append([(t, None), *((t, (view, copied)) for view, copied in found if view is not None)])
    for choice in product(*options):
        yield {t: view for t, view in choice if view is not None}


def _local(way: Way, held: Held) -> frozenset[int]:
    """Places of a kernel that are in the scratchpads; nobody writes to a copy."""
    places = enumerate(zip(way.places, way.views, strict=True))
    last = len(way.places) - 1
    return frozenset(n for n, (t, view) in places if t in held and held[t] == (view, held[t][1] and n < last))


def _plan_us(graph: Graph, chosen: Sequence[Way], held: Held) -> float:
    us = sum(_copy_us(graph.tensors[t], len(view)) for t, (view, copied) in held.items() if copied)
    return us + sum(way.us[_local(way, held)] for way in chosen)


def _copy_us(tensor: Tensor, cores: int) -> float:
    elements = tensor.bytes // 2
    return max(tensor.bytes / HBM / share(cores), tensor.bytes / cores / LX_RATE, elements / cores / SFU) / 1000


def _fits(graph: Graph, chosen: Sequence[Way], held: Held) -> bool:
    """Whether the slices fit a scratchpad while each kernel runs; a pointwise result may take an input's place."""
    lives: dict[int, tuple[int, int, int]] = {}
    for t, (view, _) in held.items():
        users = [n for n, way in enumerate(chosen) if t in {way.places[place] for place in _local(way, held)}]
        lives[t] = users[0], users[-1], graph.tensors[t].bytes // len(set(view))
    for number, node in enumerate(graph.nodes):
        live = {t: size for t, (first, last, size) in lives.items() if first <= number <= last}
        dying = [t for t in node.reads if t in live and lives[t][1] == number and not held[t][1]]
        takes = node.kind == "pointwise" and node.writes in live
        over = (
            any(held[t][0] == held[node.writes][0] and live[t] == live[node.writes] for t in dying) if takes else False
        )
        if sum(live.values()) - (live[node.writes] if over else 0) > LX:
            return False
    return True
