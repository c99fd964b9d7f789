"""Verification of a SuperDSC: kinds of fields, work division, operands, alignment.

A field that a file leaves out is not checked: files that the back end wrote are complete in other ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.superdsc.dialect.attributes import JsonAttr
from spyre_mlir.dialects.superdsc.dialect.links import operand_numbers
from spyre_mlir.dialects.superdsc.dialect.short_form import PARTIAL
from spyre_mlir.dialects.superdsc.model import derived_values, keys
from spyre_mlir.dialects.superdsc.model.descriptor import Version
from spyre_mlir.dialects.superdsc.model.fields import FIELDS, JsonKind, Level
from spyre_mlir.dialects.superdsc.model.file_context import FileContext
from spyre_mlir.dialects.superdsc.model.json_value import (
    Json,
    JsonObject,
    as_int,
    as_int_map,
    as_list,
    as_object,
    as_text,
    natural,
    same,
    spell,
)
from spyre_mlir.hw.spec import STICK_BYTES, SpyreSpec

_SHOWN = 60
_TYPES: dict[JsonKind, tuple[type, ...]] = {
    JsonKind.INT: (int,),
    JsonKind.NUMBER: (int, float),
    JsonKind.TEXT: (str,),
    JsonKind.OBJECT: (dict,),
    JsonKind.LIST: (list,),
}


def is_kind(kind: JsonKind, value: Json) -> bool:
    """Return whether a value has the JSON type; a boolean is no number."""
    if kind is JsonKind.FLAG:
        return isinstance(value, bool) or same(value, 0) or same(value, 1)
    if kind is JsonKind.CONSTANTS:
        return isinstance(value, dict) or value == "{}"
    return kind is JsonKind.ANY or (isinstance(value, _TYPES[kind]) and not isinstance(value, bool))


def wrong_kind(level: Level, fields: JsonObject) -> tuple[str, str] | None:
    """Return the first field of the wrong JSON type: its key, and the required type."""
    for key, value in fields.items():
        field = FIELDS[level].get(key)
        if field is not None and not is_kind(field.kind, value):
            return key, field.kind.value
    return None


def verify_complete(op: Operation) -> None:
    """The short form of an inner op has no meaning outside the short form of a `superdsc.sdsc`."""
    if PARTIAL in op.attributes:
        raise VerifyException(
            f"{op.name} is in short form outside a superdsc.sdsc in custom syntax; write all its fields"
        )


def verify_rest(rest: JsonAttr | None, doubled: str | None) -> None:
    """The rest is an object, and holds no field that a property or a link holds."""
    if rest is not None and not rest.data.startswith("{"):
        raise VerifyException(f"rest must be a JSON object, got {rest.data[:_SHOWN]}")
    if doubled is not None:
        raise VerifyException(f"{doubled} stands in rest and in a property or operand of its own; remove one")


def verify_kinds(level: Level, fields: JsonObject) -> None:
    """Each known field has its JSON type."""
    wrong = wrong_kind(level, fields)
    if wrong is not None:
        key, expected = wrong
        raise VerifyException(f"{key} must be {expected}, got {spell(fields[key])[:_SHOWN]}")


def verify_version(version: str) -> None:
    """The generation is a known one."""
    known = [entry.value for entry in Version]
    if version not in known:
        raise VerifyException(f"version must be one of {', '.join(known)}, got {version}")


def verify_cores(fields: JsonObject, spec: SpyreSpec) -> None:
    """The product of the splits is the number of cores, and the machine has as many."""
    cores, splits = as_int(fields.get(keys.CORES_USED)), as_int_map(fields.get(keys.SPLITS))
    if cores is not None and not 1 <= cores <= spec.cores_per_card:
        raise VerifyException(
            f"numCoresUsed_ is {cores}, the card has {spec.cores_per_card} cores; split fewer dims or split them less"
        )
    if cores is not None and splits and prod(splits.values()) != cores:
        given = " x ".join(f"{label} {split}" for label, split in splits.items())
        raise VerifyException(
            f"numWkSlicesPerDim_ gives {given} = {prod(splits.values())} slices, numCoresUsed_ is {cores}; "
            "change a split or the number of cores"
        )


def verify_division(context: FileContext) -> None:
    """Every size is divided evenly by its split."""
    for label, size in (context.sizes or {}).items():
        split = (context.splits or {}).get(label, 1)
        if size % split:
            raise VerifyException(
                f"N_ of {label} is {size}, which its {split} slices do not divide; "
                f"pad it to {-(-size // split) * split} or use a divisor of {size}"
            )


def verify_operands(
    nodes: Sequence[Json], operands: Sequence[Json], computes: Sequence[JsonObject], spec: SpyreSpec
) -> None:
    """At most as many operands as the machine takes; every reference names one of them."""
    if len(operands) > spec.operands_per_kernel:
        raise VerifyException(
            f"{len(operands)} operands in labeledDs_, a kernel takes {spec.operands_per_kernel}; split the operation"
        )
    for index in nodes:
        if index not in operands:
            raise VerifyException(f"an allocate node is for operand {index}, labeledDs_ has {list(operands)}")
    for compute in computes:
        for key in (keys.INPUTS, keys.OUTPUTS, keys.INDICES):
            for number in operand_numbers(compute.get(key)) or []:
                if number not in operands:
                    raise VerifyException(f"{key} names operand {number}, labeledDs_ has {list(operands)}")


def verify_allocate(fields: JsonObject) -> None:
    """Start addresses are whole sticks, or symbol ids; limits are one per dim."""
    data = as_object((as_object(fields.get(keys.START)) or {}).get(keys.DATA)) or {}
    for core, value in data.items():
        _verify_start(f"start address of core {core}", address_of(value), bool(fields.get(keys.SYMBOLIC)))
    order = as_list(fields.get(keys.ORDER))
    limits = as_list(fields.get(keys.MAX_SIZES))
    if order is not None and limits is not None and len(order) != len(limits):
        raise VerifyException(f"maxDimSizes_ has {len(limits)} entries for {len(order)} dims of layoutDimOrder_")


def verify_starts(addresses: Sequence[int], symbolic: bool) -> None:
    """The start addresses of all cores are whole sticks, or symbol ids."""
    for core, address in enumerate(addresses):
        if (address >= 0) if symbolic else (address < 0 or address % STICK_BYTES):
            _verify_start(f"start address of core {derived_values.core_key(core)}", address, symbolic)


def _verify_start(key: str, address: int | None, symbolic: bool) -> None:
    if address is None:
        raise VerifyException(f"{key} must be a decimal string or an integer")
    if symbolic and address >= 0:
        raise VerifyException(f"{key} is {address}; with isStartAddrSymbolic_ it must be a negative symbol id")
    if not symbolic and address < 0:
        raise VerifyException(f"{key} is {address}; negative ids need isStartAddrSymbolic_ = 1")
    if not symbolic and address % STICK_BYTES:
        raise VerifyException(
            f"{key} is {address}, which is no multiple of {STICK_BYTES} bytes; "
            f"the stick starts at {address - address % STICK_BYTES}"
        )


def address_of(value: Json) -> int | None:
    """Return an address given as an integer or as a decimal string, or None."""
    text = as_text(value)
    if text is None:
        return as_int(value)
    return None if natural(text.removeprefix("-")) is None else int(text)
