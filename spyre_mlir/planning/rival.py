"""Division of an op over the cores by torch-spyre's published rules, to compare this compiler's plans with.

Three steps: floors, the least slices that bring every operand within a core's reach; a matmul without floors by its
score; everything else by size, the longest loop of the result first. Extents are divided exactly, stick dimensions in
whole sticks, and one summed loop at most. Ops are described by plain numbers, so a plan can be made without a program.

Source: torch-spyre, work_division.py of October 2026; certain where `tests/unit/planning/test_rival.py` has published
divisions. Loops over tiles, which the planner adds on request, and float8's exception are left out.

Decision: docs/decisions/0128-the-rivals-rules.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from spyre_mlir.hw.division import DividedLoop, divisors
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec
from spyre_mlir.planning.rival_score import ProductShape, Splits, rival_score


class RivalError(ValueError):
    """Torch-spyre's planner refuses an op: no division brings its operands within reach of a core."""


@dataclass(frozen=True)
class DeviceDim:
    """One dimension of an operand in device memory, the elements of a stick left out.

    Attributes:
        extent: steps of the dimension; sticks for the one that the stick divides.
        loops: names of the loops that walk it; none for a broadcast.
    """

    extent: int
    loops: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ProductLoops:
    """Loops of a matmul that the planner's score covers.

    Attributes:
        batch: name of the loop that every operand, or all but a shared weight, has; None without a batch.
        rows: name of the loop of the result that the left operand has; None if there is one row.
        columns: name of the loop of the result that the weight has, in sticks.
        depth: name of the summed loop, in sticks.
        lanes: elements per stick.
        shared: whether the weight has no batch.
        input_bytes: bytes per element of the operands.
        output_bytes: bytes per element of the result.
    """

    batch: str | None = None
    rows: str | None
    columns: str
    depth: str
    lanes: int = 64
    shared: bool = True
    input_bytes: int = 2
    output_bytes: int = 2


@dataclass(frozen=True)
class RivalOp:
    """An op to be divided.

    Attributes:
        loops: in the order of the op; stick loops in sticks.
        operands: inputs and output, each with its dimensions from the outermost inwards.
        product: roles of the loops if the op is a matmul that the score covers.
    """

    loops: tuple[DividedLoop, ...]
    operands: tuple[tuple[DeviceDim, ...], ...] = ()
    product: ProductLoops | None = None


def rival_division(op: RivalOp, spec: SpyreSpec) -> dict[str, int]:
    """Return the slices of every loop that torch-spyre's planner would choose.

    Raises:
        RivalError: it would refuse the op.
    """
    floors = span_floors(op, spec)
    usual = default_division(op.loops, floors, spec.cores_per_card)
    if op.product is None or prod(floors.values()) > 1:
        return usual
    chosen = _by_score(op.loops, op.product, spec.cores_per_card)
    return usual if chosen is None or prod(chosen.values()) < prod(usual.values()) else chosen


def span_floors(op: RivalOp, spec: SpyreSpec) -> dict[str, int]:
    """Return the least slices per loop with which every operand is within a core's reach.

    Dimensions are visited from the outermost inwards. The first one that a core still walks decides what it spans; its
    loops get the slices that leave the longest span within reach, or the shortest span if none is.

    Raises:
        RivalError: an operand stays out of reach, two summed loops are divided, or the cores do not suffice.
    """
    loops, floors = {lp.name: lp for lp in op.loops}, {lp.name: 1 for lp in op.loops}
    for number, dims in enumerate(op.operands):
        for dim, _ in enumerate(dims):
            if operand_span_bytes(dims, floors) <= spec.span_bytes:
                break
            floors |= _floors_of(dims, dim, loops, floors, spec)
        if (span := operand_span_bytes(dims, floors)) > spec.span_bytes:
            raise RivalError(f"a core spans {span} bytes of operand {number}, it reaches {spec.span_bytes}")
    if prod(floors.values()) > spec.cores_per_card:
        wanted = ", ".join(f"{name} {split}" for name, split in floors.items() if split > 1)
        raise RivalError(f"spans ask for {wanted}: {prod(floors.values())} cores of {spec.cores_per_card}")
    if sum(floors[lp.name] > 1 for lp in op.loops if not lp.kept) > 1:
        raise RivalError("spans ask for slices of two summed loops, one may be divided")
    return floors


def operand_span_bytes(dims: Sequence[DeviceDim], splits: Mapping[str, int]) -> int:
    """Return the bytes that one core spans: steps in the outermost dimension that it walks, times their distance."""
    distance = prod(d.extent for d in dims) * STICK_BYTES
    for dim in dims:
        distance //= dim.extent
        steps = dim.extent // prod(splits[name] for name in dim.loops)
        if steps > 1:
            return steps * distance
    return STICK_BYTES


def _floors_of(
    dims: Sequence[DeviceDim],
    number: int,
    loops: Mapping[str, DividedLoop],
    floors: Mapping[str, int],
    spec: SpyreSpec,
) -> dict[str, int]:
    """Slices of the loops of one dimension: the longest span within reach, else the shortest."""
    names = dims[number].loops
    options = [
        [d for d in divisors(loops[n].units, spec.cores_per_card) if d % floors[n] == 0] if loops[n].divisible else [1]
        for n in names
    ]
    choices = [dict(zip(names, chosen, strict=True)) for chosen in product(*options)]
    spans = [(operand_span_bytes(dims, {**floors, **choice}), choice) for choice in choices]
    within = [(span, choice) for span, choice in spans if span <= spec.span_bytes]
    if within:
        return max(within, key=lambda found: (found[0], -prod(found[1].values())))[1]
    return min(spans, key=lambda found: found[0])[1]


def default_division(loops: Sequence[DividedLoop], floors: Mapping[str, int], cores: int) -> dict[str, int]:
    """Return slices by size: loops of the result from the longest on, then one summed loop, each as many as can be."""
    splits = dict(floors)
    for lp in sorted((lp for lp in loops if lp.kept), key=lambda lp: -lp.units):
        _grow(lp, splits, cores)
    summed = sorted((lp for lp in loops if not lp.kept), key=lambda lp: (-floors[lp.name], -lp.units))
    for lp in summed[:1]:
        _grow(lp, splits, cores)
    return splits


def _grow(lp: DividedLoop, splits: dict[str, int], cores: int) -> None:
    least = splits[lp.name]
    room = cores // (prod(splits.values()) // least)
    if lp.divisible:
        splits[lp.name] = max(d for d in divisors(lp.units, room) if d % least == 0)


def _by_score(loops: Sequence[DividedLoop], roles: ProductLoops, cores: int) -> dict[str, int] | None:
    """The division with the best score, the first of equals; None for a matmul without rows."""
    units = {lp.name: lp.units if lp.divisible else 1 for lp in loops}
    named = (roles.batch, roles.rows, roles.columns, roles.depth)
    if roles.rows is None or units[roles.rows] == 1:
        return None  # torch drops a dimension of one, so the planner finds no loop of rows
    batch, rows, columns, depth = (next((lp.units for lp in loops if lp.name == name), 1) for name in named)
    shape = ProductShape(
        batch=batch,
        rows=rows,
        columns=columns * roles.lanes,
        depth=depth * roles.lanes,
        shared=roles.shared,
        input_bytes=roles.input_bytes,
        output_bytes=roles.output_bytes,
    )
    options = [1 if name is None else units[name] for name in named]
    best = min(_divisions(options, cores), key=lambda splits: rival_score(shape, splits, cores).total)
    chosen = {name: split for name, split in zip(named, best, strict=True) if name is not None}
    return {lp.name: chosen.get(lp.name, 1) for lp in loops}


def _divisions(units: Sequence[int], cores: int) -> Iterator[Splits]:
    b_units, m_units, n_units, k_units = units
    for b in divisors(b_units, cores):
        for m in divisors(m_units, cores // b):
            for n in divisors(n_units, cores // (b * m)):
                for k in divisors(k_units, cores // (b * m * n)):
                    yield b, m, n, k
