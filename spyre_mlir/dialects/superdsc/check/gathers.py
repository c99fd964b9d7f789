"""Rules about tensors addressed by indices: the division of their operations, and their start addresses.

The hardware turns an index into an address with one start address for all cores: a division of what lies along a row
would give each core the same part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spyre_mlir.dialects.superdsc.check.json_file import DscJson, OperandJson, SdscJson
from spyre_mlir.dialects.superdsc.check.rule import Problem, error, problem
from spyre_mlir.dialects.superdsc.model import keys

DIVISION = "torch-spyre work division for indirect access: documentation, and the planner that forbids these dims"


@error(DIVISION, "C")
def gather_division(sdsc: SdscJson) -> Iterator[Problem]:
    """Dims along the rows of an indexed tensor are not divided; dims of indices are, in whole sticks of indices."""
    for dsc in sdsc.dscs:
        indices = [operand for operand in dsc.operands if operand.is_index]
        if indices:
            yield from _divided_rows(dsc, {label for operand in indices for label in operand.own})
            yield from _cut_sticks(indices)


def _divided_rows(dsc: DscJson, picked: set[str]) -> Iterator[Problem]:
    splits = dsc.sdsc.top.at(keys.SPLITS)
    for operand in dsc.operands:
        for label in operand.own if operand.is_gathered else ():
            if label not in picked and dsc.sdsc.splits[label] > 1:
                wanted = f"1: {label} runs along the rows of operand {operand.number}, which are found by index"
                yield problem(
                    splits.at(label), wanted, hint=f"divide {' or '.join(sorted(picked))}, or use fewer cores"
                )


def _cut_sticks(indices: Sequence[OperandJson]) -> Iterator[Problem]:
    for operand in indices:
        stick, splits = operand.stick, operand.dsc.sdsc.splits
        if stick in operand.own and splits[stick] > 1 and (count := operand.dsc.per_core(stick)) % operand.lanes:
            wanted = f"slices of whole sticks of {operand.lanes} indices"
            place = operand.dsc.sdsc.top.at(keys.SPLITS).at(stick)
            yield problem(place, wanted, f"{splits[stick]} slices of {count}", f"split {stick} less, or pad it")


@error(DIVISION, "C")
def gather_start(sdsc: SdscJson) -> Iterator[Problem]:
    """An indexed tensor starts at one address on all cores."""
    for operand in sdsc.operands:
        if operand.is_gathered and not operand.symbolic:
            yield from astray(operand, [place.number() for place in operand.starts])


def astray(operand: OperandJson, addresses: Sequence[int]) -> Iterator[Problem]:
    """Return the cores with another start in an indexed tensor than the first, given the address of each core."""
    for place, address in zip(operand.starts, addresses, strict=True):
        if address != addresses[0]:
            yield problem(place, f"{addresses[0]}, where core 0 starts in operand {operand.number}", f"{address}")


RULES = (gather_division, gather_start)
