"""The redundant parts of a SuperDSC, each computed from the fields that decide it.

Emission, elision in text, and nothing else use these: one statement of every rule. Sources are named where a rule
is not plain from real files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Dim, OpClass, Version, core_slices
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject

_STAGE_EXTRAS = (
    keys.SYMBOLIC_DIMS,
    keys.MAX_VOLUME,
    keys.CORELET_SPLIT,
    keys.ROW_SPLIT,
    keys.PE_SFP_SPLIT,
    keys.PADDING_SIZES,
)
_MATMUL_LAST, _MATMUL_COLUMNS = "in", "out"


def affine(alpha: int) -> JsonObject:
    """Return a fold that adds alpha times its index."""
    return {keys.AFFINE: {keys.ALPHA: alpha, keys.BETA: 0}}


def prop(factor: int, label: str) -> JsonObject:
    """Return extent and name of one fold."""
    return {keys.FACTOR: factor, keys.LABEL: label}


def slices_of(splits: Mapping[str, int]) -> list[dict[str, int]]:
    """Return the slice of each dim per core. Only matmuls have a dim called `in`, and it is their last."""
    dims = [Dim(label, split, split) for label, split in splits.items()]
    matmul = bool(dims) and dims[-1].label == _MATMUL_LAST
    return [dict(row) for row in core_slices(dims, OpClass.MATMUL if matmul else OpClass.POINTWISE)]


def slices_by_columns(splits: Mapping[str, int]) -> list[dict[str, int]]:
    """Return the slices per core of a matmul that counts along its columns first; none for anything else."""
    *kept, last = splits
    if last != _MATMUL_LAST or splits[last] > 1 or _MATMUL_COLUMNS not in kept:
        return []
    rest = {label: split for label, split in splits.items() if label != _MATMUL_COLUMNS}
    return slices_of({_MATMUL_COLUMNS: splits[_MATMUL_COLUMNS], **rest})


def per_core(cores: int, value: Json) -> JsonObject:
    """Return the same value for every core."""
    return {str(core): value for core in range(cores)}


def time_folds() -> JsonObject:
    """Return `sdscFolds_`: one step of time."""
    return {keys.FUNCS: [affine(1)], keys.PROPS: [prop(1, "time")], keys.DATA: {"[0]": "0"}}


def _core_props(cores: int) -> list[Json]:
    return [prop(cores, "core"), prop(1, "corelet"), prop(1, "time")]


def core_key(core: int) -> str:
    """Return the key of a core in a fold manager's data."""
    return f"[{core}, 0, 0]"


@lru_cache(maxsize=1 << 6)
def core_keys(cores: int) -> tuple[str, ...]:
    """Return the keys of all cores."""
    return tuple(map(core_key, range(cores)))


def start_folds(addresses: Sequence[str]) -> JsonObject:
    """Return `startAddressCoreCorelet_` for one address per core."""
    data: JsonObject = dict(zip(core_keys(len(addresses)), addresses, strict=True))
    result = start_head(len(addresses))
    result[keys.DATA] = data
    return result


def start_head(cores: int) -> JsonObject:
    """Return the members of `startAddressCoreCorelet_` in front of its addresses."""
    return {
        keys.FUNCS: [{keys.MAP: {}}, {keys.CONST: {}}, {keys.CONST: {}}],
        keys.PROPS: _core_props(cores),
    }


def constant_folds(cores: int, bits: int, version: Version) -> JsonObject:
    """Return `data_` of a constant; newer files write the number as a string."""
    return word_folds(cores, str(bits) if version is Version.TSNEW else bits)


def word_folds(cores: int, word: int | str) -> JsonObject:
    """Return `data_` of a constant whose word is known."""
    return {
        keys.FUNCS: [{keys.CONST: {}}, {keys.CONST: {}}, {keys.MAP: {}}],
        keys.PROPS: _core_props(cores),
        keys.DATA: {core_key(0): [word]},
    }


def stages(sizes: Mapping[str, int], splits: Mapping[str, int], version: Version) -> JsonObject:
    """Return `dataStageParam_`: steady state and epilogue are the same per-core sizes."""

    def stage() -> JsonObject:
        result: JsonObject = {keys.NAME: "core"}
        result |= {f"{label}_": size // splits.get(label, 1) for label, size in sizes.items()}
        if version is Version.TSNEW:
            result |= {key: {} for key in _STAGE_EXTRAS}
        return result

    return {"0": {keys.STEADY: stage(), keys.EPILOGUE: stage()}}


def named_sizes(sizes: Mapping[str, int]) -> JsonObject:
    """Return `N_` of a DSC."""
    result: JsonObject = {keys.NAME: "n"}
    result |= {f"{label}_": size for label, size in sizes.items()}
    return result


def coordinate(per_core_size: int, split: int, scale: int, stick: int | None, *, step: int | None = None) -> JsonObject:
    """Return one entry of `coordInfo`.

    Args:
        per_core_size: elements of one slice.
        split: number of slices.
        scale: the operand's scale for this dim.
        stick: the operand's elements per stick if this is the class's stick dim, else None.
        step: elements from one core's slice to the next; those of a slice, unless slices overlap.
    """
    step = per_core_size if step is None else step
    if scale == -2 and stick is not None:
        alphas, factors = [stick, 0, 0, stick, 0], [1, 1, 1, 1, stick]
    elif scale < 0:
        alphas, factors = [1, 0, 0, 1], [1, 1, 1, 1]
    elif stick is not None:
        alphas, factors = [per_core_size, 0, 0, stick, 1], [split, 1, 1, -(-per_core_size // stick), stick]
    else:
        alphas, factors = [step, 0, 0, 1], [split, 1, 1, per_core_size]
    elements = len(alphas) - 3
    labels = ["core_fold", "corelet_fold", "row_fold", *(f"elem_arr_{k}" for k in reversed(range(elements)))]
    funcs: list[Json] = [affine(alpha) for alpha in alphas]
    props: list[Json] = [prop(factor, label) for factor, label in zip(factors, labels, strict=True)]
    return {
        keys.SPATIAL: 3,
        keys.TEMPORAL: 0,
        keys.ELEM_ARR: elements,
        keys.COORD_PADDING: "nopad",
        keys.FOLDS: {keys.FUNCS: funcs, keys.PROPS: props},
    }


def product_fp8_coordinate(per_core_size: int, split: int, lanes: int) -> JsonObject:
    """Return the stick dim of an FP8 matmul's first operand: eight lanes of each half of a stick in turn.

    Newest torch-spyre code generation; likely.
    """
    entry = coordinate(per_core_size, split, 1, lanes)
    group = lanes // 16
    alphas = [per_core_size, 0, 0, lanes, group, lanes // 2, 1]
    factors = [split, 1, 1, -(-per_core_size // lanes), lanes // 2 // group, 2, group]
    labels = ["core_fold", "corelet_fold", "row_fold", *(f"elem_arr_{k}" for k in reversed(range(4)))]
    funcs: list[Json] = [affine(alpha) for alpha in alphas]
    props: list[Json] = [prop(factor, label) for factor, label in zip(factors, labels, strict=True)]
    entry[keys.ELEM_ARR] = 4
    entry[keys.FOLDS] = {keys.FUNCS: funcs, keys.PROPS: props}
    return entry


def node_name(index: int, component: str) -> str:
    """Return the name of an operand's allocate node."""
    return f"allocate-Tensor{index}_{component}"


def operand_name(index: int) -> str:
    """Return `dsName_` of an operand."""
    return f"Tensor{index}"


def operand_reference(index: int) -> str:
    """Return the reference of `computeOp_` to an operand."""
    return f"Tensor{index}-idx{index}"


def operation_attributes(kind: str) -> JsonObject:
    """Return `attributes_` of an operation in a data format."""
    return {keys.FORMAT: kind, keys.FIDELITY: "regular"}


def memories(component: str, index_tensor: bool) -> JsonObject:
    """Return `memOrg_`: an HBM operand is streamed through LX, except an index tensor."""
    if component == keys.HBM and not index_tensor:
        return {keys.HBM: {keys.PRESENT: 1}, keys.LX: {keys.PRESENT: 1}}
    return {component: {keys.PRESENT: 1}}
