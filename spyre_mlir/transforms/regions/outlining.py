"""Outlining: equal regions of a function become calls of one function."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir import Region as Body
from xdsl.traits import SymbolTable

from spyre_mlir.dialects.argument_notes import BITS, BOUNDS, COUNTS, KIND, PREPARED_KINDS, kind_of
from spyre_mlir.dialects.ir.call_effects import CallEffects, keeps_order
from spyre_mlir.dialects.ir.modules import take_apart
from spyre_mlir.dialects.places import Source, common_module, location_of, source_of
from spyre_mlir.transforms.regions.isomorphism import (
    Region,
    clone_into,
    equal_regions,
    live_values,
    numbered_signatures,
)
from spyre_mlir.transforms.regions.repetitions import LEAST_CALLS, best_repetition, numbered_prefixes
from spyre_mlir.transforms.utils.host_support import says_where

_MOST_REGIONS = 16
_UNNAMED = "region"


def outline(module: ModuleOp, function: func.FuncOp) -> None:
    """Replace the equal regions of a function by calls, as long as that pays."""
    for _ in range(_MOST_REGIONS):
        region = _find(function.body.block)
        if region is None:
            return
        _replace(module, function, region)


def _find(block: Block) -> Region | None:
    ops = [op for op in block.ops if not isinstance(op, func.ReturnOp)]
    signatures = numbered_signatures(ops)
    _part(ops, signatures)
    paths = [source_of(op.location).module for op in ops]
    effects = [n for n, op in enumerate(ops) if (op.has_trait(CallEffects) and keeps_order(op)) or says_where(op)]
    while (found := best_repetition(signatures, paths, live_values(ops), effects)) is not None:
        region = equal_regions([ops[at : at + found.length] for at in found.starts], LEAST_CALLS)
        if region is not None:
            return region
        # Equal signatures, wired in different ways: none of these ops is looked at again.
        for at in found.starts:
            for number in range(at, at + found.length):
                signatures[number] = -1 - number
    return None


def _part(ops: Sequence[Operation], signatures: list[int]) -> None:
    """Gives calls numbers of their own: a region within calls of a region is not looked for, nor one around a step.

    Launches end at a step of the host that reads where the next ones find their matrices.
    """
    for number, op in enumerate(ops):
        if isinstance(op, func.CallOp) or says_where(op):
            signatures[number] = -1 - number


def _replace(module: ModuleOp, function: func.FuncOp, region: Region) -> None:
    paths = [common_module(o.ops) for o in region.occurrences]
    firsts = _first_numbers(region)
    made = _function(module, function, region, paths[0])
    made.location = location_of(Source(module=paths[0], number=firsts[0]))
    module.body.block.add_op(made)
    types = [region.occurrences[0].ops[n].results[m].type for n, m in region.results]
    current: dict[SSAValue, SSAValue] = {}
    for number, occurrence in enumerate(region.occurrences):
        operands = [current.get(v, v) for v in (values[number] for values in region.parameters)]
        call = func.CallOp(made.sym_name.data, operands, types)
        call.location = location_of(Source(module=paths[number], number=firsts[number]))
        for op in occurrence.counting:
            op.detach()
        function.body.block.insert_ops_before([*occurrence.counting, call], occurrence.ops[0])
        for (n, m), result in zip(region.results, call.results, strict=True):
            old = occurrence.ops[n].results[m]
            result.name_hint, current[old] = old.name_hint, result
            old.replace_all_uses_with(result)
    for occurrence in region.occurrences:
        for op in reversed(occurrence.ops):
            take_apart(op)


def _function(module: ModuleOp, caller: func.FuncOp, region: Region, path: str) -> func.FuncOp:
    first = region.occurrences[0]
    block = Block(arg_types=[values[0].type for values in region.parameters])
    for argument, values in zip(block.args, region.parameters, strict=True):
        argument.name_hint = _short(values[0].name_hint, path)
    copies = clone_into(first.ops, {})
    _read_parameters(copies, first.outside, [block.args[place] for place in region.places])
    block.add_ops(copies)
    block.add_op(func.ReturnOp(*[copies[n].results[m] for n, m in region.results]))
    inputs = [argument.type for argument in block.args]
    outputs = [copies[n].results[m].type for n, m in region.results]
    notes = ArrayAttr([DictionaryAttr(_notes(caller, values)) for values in region.parameters])
    return func.FuncOp(_free_name(module, path), (inputs, outputs), Body(block), "private", arg_attrs=notes)


def _read_parameters(ops: Sequence[Operation], outside: Sequence[SSAValue], parameters: Sequence[SSAValue]) -> None:
    """Let each operand from outside read its parameter: one value here may be several at other places of the region."""
    own, places = {result for op in ops for result in op.results}, iter(zip(outside, parameters, strict=True))
    for op in ops:
        for number, value in enumerate(op.operands):
            if value not in own:
                before, parameter = next(places)
                assert value is before
                op.operands[number] = parameter


def _first_numbers(region: Region) -> list[int]:
    """Numbers of the first ops, if ops are `numbered`; 0 where those that follow are not numbered as in the first."""
    numbers = [[source_of(op.location).number for op in o.ops] for o in region.occurrences]
    home = [number - numbers[0][0] for number in numbers[0]]
    return [own[0] if [number - own[0] for number in own] == home else 0 for own in numbers]


def _short(hint: str | None, path: str) -> str | None:
    """The name of a weight within its layer."""
    short = "" if hint is None else hint.removeprefix(f"p_{path.replace('.', '_')}_").removeprefix("p_")
    return short if SSAValue.is_valid_name(short) and not short[:1].isdigit() else hint


def _free_name(module: ModuleOp, path: str) -> str:
    """The name of the layers in the model, ``layers`` for ``model.layers.0``; with a number if it is taken."""
    prefix = (numbered_prefixes(path) or [_UNNAMED])[-1]
    words = [part for part in prefix.split(".") if not part.isdigit()] or [_UNNAMED]
    name, tries = re.sub(r"\W", "_", words[-1]) or _UNNAMED, 0
    free = name
    while SymbolTable.lookup_symbol(module, free) is not None:
        tries += 1
        free = f"{name}_{tries}"
    return free


def _notes(caller: func.FuncOp, values: Sequence[SSAValue]) -> dict[str, Attribute]:
    """What the callee may know of a parameter: which kind of argument it always is, and the bounds of its integers."""
    if all(says_where(v.owner) for v in values):
        return {KIND: StringAttr("input")}  # the host has them when it launches the function
    arguments = [v for v in values if isinstance(v, BlockArgument)]
    if len(arguments) < len(values) or caller.arg_attrs is None:
        return {}
    given = [caller.arg_attrs.data[v.index].data for v in arguments]
    kinds = {kind for v in arguments if (kind := kind_of(caller, v.index)) is not None}
    if any(KIND not in entry for entry in given):
        return {}
    common = kinds.pop() if len(kinds) == 1 else "buffer" if kinds <= set(PREPARED_KINDS) else "input"
    notes: dict[str, Attribute] = {KIND: StringAttr(common)}
    counts = {COUNTS: given[0][COUNTS]} if all(COUNTS in entry for entry in given) else {}
    return notes | _bounds(given) | _bits(given) | counts


def _bounds(given: Sequence[Mapping[str, Attribute]]) -> dict[str, Attribute]:
    pairs = [bounds for entry in given if (bounds := _pair(entry.get(BOUNDS))) is not None]
    if len(pairs) != len(given):
        return {}
    return {BOUNDS: DenseArrayBase.from_list(i64, [min(low for low, _ in pairs), max(high for _, high in pairs)])}


def _bits(given: Sequence[Mapping[str, Attribute]]) -> dict[str, Attribute]:
    noted = [bits.value.data for entry in given if isinstance(bits := entry.get(BITS), IntegerAttr)]
    return {BITS: IntegerAttr(max(noted), i64)} if len(noted) == len(given) else {}


def _pair(bounds: Attribute | None) -> tuple[int, int] | None:
    if not isinstance(bounds, DenseArrayBase):
        return None
    low, high = (int(n) for n in bounds.get_values())
    return low, high


__all__ = ["outline"]
