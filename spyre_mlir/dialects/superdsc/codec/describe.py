"""From a SuperDSC to a descriptor, field by field, without consistency checks.

Splits come from `numWkSlicesPerDim_`, slices from `coreIdToWkSlice_`, extents from `N_` and the gaps, starts from the
allocate nodes. A file whose fields contradict each other is refused with the place, what was expected and what is
there; one that uses what we do not know is refused as unsupported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod

from spyre_mlir.dialects.superdsc.codec.cursor import Cursor
from spyre_mlir.dialects.superdsc.codec.describe_operand import read_operands
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_to_json
from spyre_mlir.dialects.superdsc.codec.symbolic_fields import read_symbolic
from spyre_mlir.dialects.superdsc.codec.window_fields import read_windows
from spyre_mlir.dialects.superdsc.dialect.links import operand_numbers
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.dialects.superdsc.model import derived_values, keys
from spyre_mlir.dialects.superdsc.model.descriptor import (
    ACCUMULATING,
    NONSTICK,
    Constant,
    Descriptor,
    Dim,
    OpClass,
    Slices,
)
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject, natural
from spyre_mlir.errors import ReadError, UnsupportedError
from spyre_mlir.ops.hardware_functions import Special, restickifies, special_of

_MATMUL = "batchmatmul"
_RUN_FIRST_DSC = (-1, 0)
_KNOWN_SIZES = (keys.PADDING_SIZES, keys.SYMBOLIC_DIMS)


def describe(op: SdscOp) -> Descriptor:
    """Return the descriptor of a SuperDSC.

    Raises:
        ReadError: fields are missing, of the wrong type, or contradict each other.
        UnsupportedError: the file uses a feature this reader has no meaning for.
    """
    return describe_json(sdsc_to_json(op))


def describe_json(value: JsonObject) -> Descriptor:
    """Return the descriptor of a SuperDSC file's value; see `describe`.

    Raises:
        ReadError: the file has another number of root keys than one.
    """
    if len(value) != 1:
        raise ReadError(f"expected one root key, got {list(value)}", where="$")
    ((root, _),) = value.items()
    top = Cursor(value, "$").at(root)
    _refuse_data_movement(top)  # before what its steps change: schedules, slices
    splits = _splits(top)
    slices = _slices(top, splits)
    _check_schedule(top, len(slices))
    dsc = _only_dsc(top)
    dims = _dims(top, dsc, splits)
    _check_cores(dsc, len(slices))
    _check_stages(dsc, dims)
    windows = read_windows(dsc.at(keys.SIZES), {dim.label: dim for dim in dims})
    constants = _constants(dsc)
    compute = _compute(dsc)
    shape = Descriptor(0, compute.op_func, compute.unit, compute.op_class, dims, (), windows=windows, slices=slices)
    operands = read_operands(dsc, shape)
    mask = dsc.at(keys.MASK_CONSTANT)
    if not -1 <= mask.integer() < len(constants):
        mask.fail(f"-1 or one of {len(constants)} constants")
    return Descriptor(
        index=natural(root.partition("_")[0]) or 0,
        op_func=compute.op_func,
        unit=compute.unit,
        op_class=compute.op_class,
        dims=dims,
        operands=operands,
        constants=constants,
        mask_constant=mask.integer(),
        op_format=compute.format,
        windows=windows,
        slices=slices,
    )


def _splits(top: Cursor) -> dict[str, int]:
    place = top.at(keys.SPLITS)
    splits = place.integer_map()
    if not splits or min(splits.values()) < 1:
        place.fail("at least one dim, each with one slice or more")
    cores = top.at(keys.CORES_USED)
    if cores.integer() != prod(splits.values()):
        cores.fail(f"the product of the splits {splits}, {prod(splits.values())}")
    return splits


def _slices(top: Cursor, splits: Mapping[str, int]) -> Slices:
    table = top.at(keys.CORE_TO_SLICE)
    rows: list[dict[str, int]] = []
    for core in range(prod(splits.values())):
        row = table.at(str(core))
        numbers = row.integer_map()
        for label, split in splits.items():
            if not 0 <= row.at(label).integer() < split:
                row.at(label).fail(f"a slice from 0 to {split - 1}")
        rows.append(numbers)
    if len(set(map(_row_key, rows))) != len(rows):
        table.fail("different slices for every core", "two cores with the same slices")
    return tuple(rows)


def _row_key(row: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(row.items()))


def _check_schedule(top: Cursor, cores: int) -> None:
    if keys.SCHEDULE not in top:
        return
    for core in range(cores):
        step = top.at(keys.SCHEDULE).at(str(core)).only()
        numbers = step.integers()
        if tuple(numbers[:2]) != _RUN_FIRST_DSC:
            step.unsupported("a schedule other than running the first DSC", "split the file into one SuperDSC per step")


def _refuse_data_movement(top: Cursor) -> None:
    for key in (keys.DATA_DSCS, keys.DATA_OP_DSCS):
        if key in top and (held := top.at(key).items()):
            top.at(key).unsupported(f"{len(held)} data-movement DSCs, whose steps are not modelled")


def _only_dsc(top: Cursor) -> Cursor:
    dscs = top.at(keys.DSCS).items()
    if len(dscs) != 1:
        top.at(keys.DSCS).unsupported(f"{len(dscs)} DSCs in one file, where one is understood")
    members = list(dscs[0].members())
    if len(members) != 1:
        dscs[0].fail("one DSC under its name")
    return members[0][1]


def _dims(top: Cursor, dsc: Cursor, splits: Mapping[str, int]) -> tuple[Dim, ...]:
    sizes: dict[str, int] = {}
    place = dsc.at(keys.SIZES)
    for key, member in place.members():
        label = key.removesuffix("_")
        if label in splits:
            sizes[label] = member.integer()
        elif isinstance(member.value, dict) and member.value and key not in _KNOWN_SIZES:
            member.unsupported("sizes we have no meaning for")
    masks = _masks(dsc, sizes)
    dims: list[Dim] = []
    for label, split in splits.items():
        if label not in sizes:
            place.fail(f"a size for dim {label} of numWkSlicesPerDim_", f"sizes for {list(sizes)}")
        if sizes[label] < 1 or sizes[label] % split:
            place.at(f"{label}_").fail(f"a positive multiple of its {split} slices")
        dim = Dim(label, sizes[label], split, masks.get(label))
        dims.append(replace(dim, symbolic=read_symbolic(top, dsc, dim)))
    return tuple(dims)


def _masks(dsc: Cursor, sizes: Mapping[str, int]) -> dict[str, int]:
    masks: dict[str, int] = {}
    if keys.MASKING not in dsc:
        return masks
    for label, place in dsc.at(keys.MASKING).members():
        pairs = place.items()
        if len(pairs) != 1:
            place.unsupported("masking in several stretches")
        pair = pairs[0].integers()
        if label not in sizes or len(pair) != 2 or pair[0] < 1 or pair[1] < 0 or sum(pair) != sizes[label]:
            place.fail(f"valid and padding extents that add up to the size {sizes.get(label)} of {label}")
        masks[label] = pair[0]
    return masks


def _check_cores(dsc: Cursor, cores: int) -> None:
    if keys.CORE_IDS in dsc:
        dsc.at(keys.CORE_IDS).must_be(list(range(cores)))
    if keys.CORES_USED in dsc:
        dsc.at(keys.CORES_USED).must_be(cores)


def _check_stages(dsc: Cursor, dims: tuple[Dim, ...]) -> None:
    if keys.STAGES not in dsc:
        return
    for stage in (keys.STEADY, keys.EPILOGUE):
        place = dsc.at(keys.STAGES).at("0").at(stage)
        for dim in dims:
            if place.at(f"{dim.label}_").integer() != dim.per_core:
                place.at(f"{dim.label}_").fail(f"{dim.extent} elements in {dim.split} slices, {dim.per_core}")


def _constants(dsc: Cursor) -> tuple[Constant, ...]:
    place = dsc.at(keys.CONSTANTS)
    if place.value == "{}":
        return ()
    constants: list[Constant] = []
    for number, (key, entry) in enumerate(place.members()):
        if key != str(number):
            place.fail(f"constants numbered from 0, next {number}", f"key {key!r}")
        word = entry.at(keys.DATA).at(keys.DATA).at(derived_values.core_key(0)).only()
        constants.append(Constant(entry.at(keys.NAME).text(), entry.at(keys.FORMAT).text(), word.number()))
    return tuple(constants)


@dataclass(frozen=True)
class _Compute:
    op_func: str
    unit: str
    op_class: OpClass
    format: str


def _compute(dsc: Cursor) -> _Compute:
    place = dsc.at(keys.COMPUTE).only()
    name, unit = place.at(keys.FUNCTION).text(), place.at(keys.UNIT).text()
    last = len(dsc.at(keys.LABELED_DS).items()) - 1
    if last < 0:
        dsc.at(keys.LABELED_DS).fail("at least one operand")
    if _numbers(place.at(keys.OUTPUTS)) != [last]:
        place.at(keys.OUTPUTS).fail(f"the last operand, {derived_values.operand_reference(last)}")
    read = _numbers(place.at(keys.INPUTS))
    indices = _numbers(place.at(keys.INDICES)) if keys.INDICES in place else []
    op_class = _op_class(place, name, unit, last in read, bool(indices))
    expected = [number for number in range(last + (op_class in ACCUMULATING)) if number not in indices]
    if read != expected:
        place.at(keys.INPUTS).fail(f"operands {expected} in order")
    op_func = name.removesuffix(NONSTICK) if op_class is OpClass.REDUCTION else name
    return _Compute(op_func, unit, op_class, place.at(keys.ATTRIBUTES).at(keys.FORMAT).text())


def _numbers(place: Cursor) -> list[int]:
    numbers = operand_numbers(place.value)
    return place.fail('references like "Tensor0-idx0"') if numbers is None else numbers


_CLASSES = {
    Special.SHUFFLE: OpClass.SHUFFLE,
    Special.LARGEST: OpClass.TOP_K,
    Special.PLACES_OF_LARGEST: OpClass.TOP_K,
    Special.POOLING: OpClass.POOLING,
    Special.CONVOLUTION: OpClass.CONVOLUTION,
    Special.DEPTHWISE: OpClass.DEPTHWISE,
}


def _op_class(place: Cursor, name: str, unit: str, accumulates: bool, gathers: bool) -> OpClass:
    if unit not in ("pt", "sfp"):
        place.at(keys.UNIT).fail('"pt" or "sfp"')
    special = special_of(name)
    matrix = name.startswith(_MATMUL) or special is Special.CONVOLUTION
    if (unit == "pt") != matrix:
        raise UnsupportedError(f"{name} on unit {unit} is not understood", where=place.path)
    if special in _CLASSES:
        return _CLASSES[special]
    if unit == "pt":
        return OpClass.MATMUL
    if gathers:
        return OpClass.GATHER
    if accumulates:
        return OpClass.REDUCTION
    return OpClass.RESTICKIFY if restickifies(name) else OpClass.POINTWISE
