"""Equality of regions: the same ops, wired alike inside; what comes from outside becomes parameters."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerType, i1
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.traits import is_side_effect_free

from spyre_mlir.dialects.aten_arguments import ORIGIN
from spyre_mlir.dialects.tensors import element_of
from spyre_mlir.transforms.utils.host_support import says_where


@dataclass(frozen=True)
class Occurrence:
    """A region at one of its places.

    Attributes:
        ops: its ops, in order.
        counting: ops among them that are no part of the region, and can stand before it.
        outside: per operand that comes from outside, the value; in the order of ops and operands.
    """

    ops: tuple[Operation, ...]
    counting: tuple[Operation, ...]
    outside: tuple[SSAValue, ...]


@dataclass(frozen=True)
class Region:
    """Equal regions of a function.

    Attributes:
        occurrences: where it is.
        parameters: per parameter, its value at every occurrence.
        places: per outside operand of an occurrence, the number of its parameter.
        results: values used behind some occurrence: number of the op and of its result.
    """

    occurrences: tuple[Occurrence, ...]
    parameters: tuple[tuple[SSAValue, ...], ...]
    places: tuple[int, ...]
    results: tuple[tuple[int, int], ...]


def signature(op: Operation) -> Hashable:
    """Return what equal ops have in common: name, arguments and types, not their place in the model."""
    attributes = {name: value for name, value in op.attributes.items() if name != ORIGIN}
    return (
        op.name,
        tuple(sorted(attributes.items(), key=lambda item: item[0])),
        tuple(sorted(op.properties.items(), key=lambda item: item[0])),
        tuple(v.type for v in op.operands),
        tuple(r.type for r in op.results),
    )


def numbered_signatures(ops: Sequence[Operation]) -> list[int]:
    """Return equal numbers for ops of equal signatures; an op with a body, or one that draws, equals no other.

    The order of draws is that of the steps of one function.
    """
    known: dict[Hashable, int] = {}
    alone = [bool(op.regions) or not is_side_effect_free(op) for op in ops]
    return [known.setdefault(("op", n) if alone[n] else signature(op), len(known)) for n, op in enumerate(ops)]


def live_values(ops: Sequence[Operation]) -> list[int]:
    """Return per op how many values computed before it are used by it or behind it."""
    at = {op: number for number, op in enumerate(ops)}
    changes = [0] * (len(ops) + 1)
    for number, op in enumerate(ops):
        for result in op.results:
            last = max((at.get(use.operation, len(ops) - 1) for use in result.uses), default=number)
            changes[number + 1] += 1
            changes[last + 1] -= 1
    widths, width = list[int](), 0
    for change in changes[: len(ops)]:
        width += change
        widths.append(width)
    return widths


def equal_regions(pieces: Sequence[Sequence[Operation]], least: int) -> Region | None:
    """Return the region that most pieces are, all of whose ops have equal signatures; None if fewer than `least` are.

    Pieces whose ops read each other in another way than most are left out. So is every piece if an integer passes the
    border that is no argument of the function, nor a number by which the host says where a launch reads: what is known
    about its size would be lost. Ops that only count, such as the length of a cache, are no part of a region.
    """
    groups: dict[Hashable, list[Occurrence]] = {}
    for ops in pieces:
        wiring, occurrence = _wiring(ops)
        groups.setdefault(wiring, []).append(occurrence)
    found = max(groups.values(), key=len)
    if len(found) < least or not found[0].ops:
        return None
    return _region(found)


def _counting(ops: Sequence[Operation]) -> set[Operation]:
    """The ops of a piece that make integers from what is outside, for the outside alone."""
    own, made = set(ops), set[Operation]()
    for op in ops:
        reads_outside = all(v.owner not in own or v.owner in made for v in op.operands)
        if reads_outside and op.results and all(map(_is_integer, op.results)):
            made.add(op)
    for op in reversed(ops):
        if op in made and any(use.operation in own and use.operation not in made for r in op.results for use in r.uses):
            made.remove(op)
    return made


def _wiring(piece: Sequence[Operation]) -> tuple[Hashable, Occurrence]:
    counting = _counting(piece)
    ops = [op for op in piece if op not in counting]
    inside: dict[SSAValue, tuple[int, int]] = {
        result: (n, m) for n, op in enumerate(ops) for m, result in enumerate(op.results)
    }
    wiring = tuple(inside.get(v) for op in ops for v in op.operands)
    outside = tuple(v for op in ops for v in op.operands if v not in inside)
    parts = tuple(op in counting for op in piece)
    return (wiring, parts), Occurrence(tuple(ops), tuple(op for op in piece if op in counting), outside)


def _region(found: Sequence[Occurrence]) -> Region | None:
    numbers: dict[tuple[SSAValue, ...], int] = {}
    operands = zip(*(o.outside for o in found), strict=True)
    places = tuple(numbers.setdefault(values, len(numbers)) for values in operands)
    results = sorted({place for occurrence in found for place in _results(occurrence)})
    passed = ((o.ops[n].results[m], o) for o in found for n, m in results)
    if any(_is_integer(v) and not _is_read_by_host(v, o) for v, o in passed) or any(map(_is_lost, numbers)):
        return None
    return Region(tuple(found), tuple(numbers), places, tuple(results))


def _results(occurrence: Occurrence) -> list[tuple[int, int]]:
    own = set(occurrence.ops)
    values = ((n, m, r) for n, op in enumerate(occurrence.ops) for m, r in enumerate(op.results))
    return [(n, m) for n, m, r in values if any(use.operation not in own for use in r.uses)]


def _is_integer(value: SSAValue) -> bool:
    element = element_of(value)
    return isinstance(element, IntegerType) and element != i1


def _is_lost(values: tuple[SSAValue, ...]) -> bool:
    return _is_integer(values[0]) and not all(isinstance(v, BlockArgument) or says_where(v.owner) for v in values)


def _is_read_by_host(value: SSAValue, occurrence: Occurrence) -> bool:
    """Whether steps of the host that say where launches read are all that reads a result behind a piece."""
    return all(says_where(use.operation) for use in value.uses if use.operation not in occurrence.ops)


def clone_into(ops: Sequence[Operation], known: Mapping[SSAValue, SSAValue]) -> list[Operation]:
    """Return copies of ops that read the values that `known` has for theirs."""
    values = dict(known)
    return [op.clone(value_mapper=values) for op in ops]


__all__ = ["Occurrence", "Region", "clone_into", "equal_regions", "live_values", "numbered_signatures", "signature"]
