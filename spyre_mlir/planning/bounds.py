"""Bounds that no plan beats: the roofline of a whole program, and the serial bound of its steps.

SuperDSCs of a bundle follow each other, so that the arithmetic of one never hides the memory time of another
(torch-spyre, cost_model.md; likely). The serial bound is the least time of any sequence of them that does these steps
one by one on all cores of the card, every intermediate in the scratchpads, every tensor from outside loaded once and
every result stored once, each inside of a step that uses it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from spyre_mlir.hw.cost import roofline_us
from spyre_mlir.hw.cost_parameters import CALIBRATED, NS_PER_US, CostParameters
from spyre_mlir.hw.spec import SPYRE, SpyreSpec


@dataclass(frozen=True, kw_only=True)
class Step:
    """The least that one hardware function of a program has to do, whatever the plan.

    Attributes:
        macs: multiply-adds on the PE array.
        elements: points that the vector unit computes.
        loads: bytes that it needs of tensors from outside, by tensor.
        stores: bytes of results of the program that it makes.
        local: bytes of intermediates that it reads or writes.
        after: numbers of the steps whose results it reads.
    """

    macs: int = 0
    elements: int = 0
    loads: Mapping[Hashable, int] = field(default_factory=dict[Hashable, int])
    stores: int = 0
    local: int = 0
    after: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Bounds:
    """Least times of a program, microseconds.

    Attributes:
        roofline: all its arithmetic, or all bytes from and to outside, on the whole card.
        serial: its steps one after the other.
        bytes: bytes from and to outside, each once.
    """

    roofline: float
    serial: float
    bytes: int


def bounds(steps: Sequence[Step], p: CostParameters = CALIBRATED, spec: SpyreSpec = SPYRE) -> Bounds:
    """Return the least times of a program that does these steps, at the rates of a profile."""
    needed = _needed(steps)
    moved = sum(needed.values()) + sum(step.stores for step in steps)
    roofline = roofline_us(sum(step.macs for step in steps), moved, p, spec)
    return Bounds(roofline, serial_us(steps, p, spec), moved)


def serial_us(steps: Sequence[Step], p: CostParameters = CALIBRATED, spec: SpyreSpec = SPYRE) -> float:
    """Return the serial bound.

    A tensor that several steps read is loaded in any of them that may be first (`_loaders`): it hides behind what they
    have to compute, as far as that is longer than what they load and store anyway. Each such tensor is taken to have
    that slack for itself.
    """
    readers: dict[Hashable, list[int]] = {}
    for number, step in enumerate(steps):
        for tensor in step.loads:
            readers.setdefault(tensor, []).append(number)
    busy = [_busy_ns(step, p, spec) for step in steps]
    own = [
        (step.stores + sum(size for tensor, size in step.loads.items() if len(readers[tensor]) == 1)) / p.hbm_gb_per_s
        for step in steps
    ]
    total = sum(max(*pair) for pair in zip(busy, own, strict=True))
    for tensor, size in _needed(steps).items():
        if len(readers[tensor]) > 1:
            slack = sum(max(0.0, busy[n] - own[n]) for n in _loaders(steps, tensor, readers[tensor]))
            total += max(0.0, size / p.hbm_gb_per_s - slack)
    return total / NS_PER_US


def _loaders(steps: Sequence[Step], tensor: Hashable, readers: Collection[int]) -> list[int]:
    """The readers of a tensor that follow no other reader, if each needs all that is needed of it; else all readers."""
    late = set[int]()
    for number, step in enumerate(steps):
        if any(before in late or before in readers for before in step.after):
            late.add(number)
    first = [n for n in readers if n not in late]
    most = max(steps[n].loads[tensor] for n in readers)
    return first if all(steps[n].loads[tensor] == most for n in first) else list(readers)


def _busy_ns(step: Step, p: CostParameters, spec: SpyreSpec) -> float:
    """Time of the engines of all cores, memory apart."""
    cores = spec.cores_per_card
    arithmetic = max(step.macs / p.pe_mac_per_ns_per_core, step.elements / p.sfu_elements_per_ns_per_core)
    return max(arithmetic, step.local / p.lx_gb_per_s_per_core) / cores


def _needed(steps: Sequence[Step]) -> dict[Hashable, int]:
    """Bytes of each tensor from outside: the most that one step needs of it."""
    needed: dict[Hashable, int] = {}
    for step in steps:
        for tensor, size in step.loads.items():
            needed[tensor] = max(size, needed.get(tensor, 0))
    return needed


__all__ = ["Bounds", "Step", "bounds", "serial_us"]
