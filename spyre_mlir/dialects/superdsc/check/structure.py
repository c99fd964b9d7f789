"""Rules about the shape of a file: which keys stand where, how many DSCs there are, what each core runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Set

from spyre_mlir.dialects.superdsc.check.rule import Problem, error, problem, warning
from spyre_mlir.dialects.superdsc.check.view import DATA_DSCS, DIM_KEYS, Sdsc
from spyre_mlir.dialects.superdsc.cursor import Cursor
from spyre_mlir.dialects.superdsc.fields import FIELDS, Level
from spyre_mlir.dialects.superdsc.json_value import as_list
from spyre_mlir.dialects.superdsc.verify import is_kind

_VALIDATOR = "published SuperDSC schema of torch-spyre's validator"
_DRAFT = "draft SuperDSC interface specification"
_FRONT_END = "torch-spyre code generation, real files"

_ROOT = re.compile(r"[A-Za-z0-9_/-]+")
_FORK_KEYS = frozenset({"lxRelayoutClassifications_", "onchipMove_", "streamingPTLXFull_"})
_BACK_END_KEYS = frozenset(
    {
        "N_",
        "unpadN_",
        "target_",
        "opFuncsUsed_",
        "ldsShareInfo_",
        "prodConsList",
        "pcfg_",
        "spb_",
        "fold_coord_",
        "folded_sdsc_name_",
    }
)
_TARGETS = frozenset({"senulator", "sentient", "senpcfg", "sentf", "systemc", "r5ss", "host"})
_REQUIRED_TOP = (
    "coreFoldProp_", "coreletFoldProp_", "numCoresUsed_", "coreIdToDsc_", "coreIdToDscSchedule", "dscs_",
)  # fmt: skip
_REQUIRED_DSC = ("numCoresUsed_", "coreIdsUsed_", "N_", "scheduleTree_", "labeledDs_", "computeOp_")
_DATA_STAGE_KEYS = frozenset(
    {"symbolicDimInfo_", "maxSymbolicVolume_", "coreletSplit_", "rowSplit_", "peSfpSplit_", "paddingSizes_", "name_"}
)
_FOLDS = frozenset({"dim_prop_func", "dim_prop_attr", "data_"})


def objects(sdsc: Sdsc) -> Iterator[tuple[Level, Cursor]]:
    """Every object of the file that has a table of keys."""
    yield Level.SDSC, sdsc.top
    for dsc in sdsc.dscs:
        yield Level.DSC, dsc.at
        for key, level in (
            ("scheduleTree_", Level.ALLOCATE),
            ("labeledDs_", Level.LABELED_DS),
            ("computeOp_", Level.COMPUTE),
        ):
            if key in dsc.at:
                for entry in dsc.at.at(key).items():
                    yield level, entry
        if "constantInfo_" in dsc.at:
            for entry in dsc.constants.values():
                yield Level.CONSTANT, entry


def _nested(sdsc: Sdsc) -> Iterator[tuple[frozenset[str], Cursor]]:
    """Every smaller object with a known set of keys."""
    for dsc in sdsc.dscs:
        yield DIM_KEYS | _DATA_STAGE_KEYS, dsc.at.at("N_")
        if "dataStageParam_" in dsc.at:
            for _, stage in dsc.at.at("dataStageParam_").members():
                yield frozenset({"ss_", "el_"}), stage
                for _, sizes in stage.members():
                    yield DIM_KEYS | _DATA_STAGE_KEYS, sizes
        for _, layout in dsc.at.at("primaryDsInfo_").members() if "primaryDsInfo_" in dsc.at else ():
            yield frozenset({"layoutDimOrder_", "stickDimOrder_", "stickSize_", "stickRepl_"}), layout
        if "attributes_" in dsc.compute:
            yield frozenset({"dataFormat_", "fidelity_"}), dsc.compute.at("attributes_")
    yield from _nested_in_operands(sdsc)


def _nested_in_operands(sdsc: Sdsc) -> Iterator[tuple[frozenset[str], Cursor]]:
    for operand in sdsc.operands:
        if "memOrg_" in operand.entry:
            yield frozenset({"hbm", "lx"}), operand.entry.at("memOrg_")
            for _, memory in operand.entry.at("memOrg_").members():
                yield frozenset({"isPresent", "isPadded", "isZeroPadded", "gapPerDim", "dsOffset"}), memory
        if "startAddressCoreCorelet_" in operand.node:
            yield _FOLDS, operand.node.at("startAddressCoreCorelet_")
        if "coordinates_" in operand.node:
            place = operand.node.at("coordinates_")
            yield frozenset({"coordInfo", "coreIdToWkSlice_"}), place
            for _, info in place.at("coordInfo").members():
                yield frozenset({"spatial", "temporal", "elemArr", "padding", "folds"}), info
                yield _FOLDS, info.at("folds")


@error(_VALIDATOR + "; our tables of keys", "C")
def field_type(sdsc: Sdsc) -> Iterator[Problem]:
    """Every known key holds a value of its JSON type."""
    for level, place in objects(sdsc):
        for key, member in place.members():
            field = FIELDS[level].get(key)
            if field is not None and not is_kind(field.kind, member.value):
                yield problem(member, field.kind.value)


@error(_DRAFT + ", required members", "C")
def required_field(sdsc: Sdsc) -> Iterator[Problem]:
    """The keys that a reader cannot do without are there."""
    wanted = [(sdsc.top, _REQUIRED_TOP), *((dsc.at, _REQUIRED_DSC) for dsc in sdsc.dscs)]
    for place, keys in wanted:
        members = dict(place.members())
        for key in keys:
            if key not in members:
                yield problem(place, f"a member {key!r}", f"members {list(members)}")


@warning("list of the keys that public sources name; the back end is said to ignore others", "L")
def unknown_key(sdsc: Sdsc) -> Iterator[Problem]:
    """No key is one that no public source names; such keys are kept."""
    for level, place in objects(sdsc):
        yield from _unknown(place, FIELDS[level].keys() | _FORK_KEYS)
    for keys, place in _nested(sdsc):
        yield from _unknown(place, keys)


def _unknown(place: Cursor, known: Set[str]) -> Iterator[Problem]:
    for key, member in place.members():
        if key not in known:
            yield Problem(member.path, "a key of the format", key, "drop the key, or check its spelling")


@warning("real files of research builds of the front end", "L")
def fork_key(sdsc: Sdsc) -> Iterator[Problem]:
    """No key is one that only research builds of the front end write."""
    for key, member in sdsc.top.members():
        if key in _FORK_KEYS:
            yield Problem(member.path, "a key of the published front end", key, "drop the key")


@warning("a real file that the back end wrote", "L")
def back_end_key(sdsc: Sdsc) -> Iterator[Problem]:
    """No key is one that only the back end writes."""
    for key, member in sdsc.top.members():
        if key in _BACK_END_KEYS or (key in DATA_DSCS and member.value):
            yield Problem(member.path, "a key that a front end writes", key, "give the back end the file before it")


@error(_VALIDATOR, "C")
def root_key(sdsc: Sdsc) -> Iterator[Problem]:
    """The root key is made of letters, digits, `_`, `/` and `-`."""
    if not _ROOT.fullmatch(sdsc.root):
        yield Problem("$", "a root key of letters, digits, _, / and -", repr(sdsc.root))


@warning(_FRONT_END, "C")
def root_name(sdsc: Sdsc) -> Iterator[Problem]:
    """The root key is the op's number in the bundle, `_`, and the function's name."""
    for dsc in sdsc.dscs:
        number, _, name = sdsc.root.partition("_")
        if not (number.isascii() and number.isdigit()) or name != dsc.function:
            yield Problem("$", f"a root key such as 0_{dsc.function}", repr(sdsc.root))


@error(_FRONT_END, "C")
def dsc_name(sdsc: Sdsc) -> Iterator[Problem]:
    """The key of a DSC is the name of its function."""
    for dsc in sdsc.dscs:
        if dsc.name != dsc.function:
            yield problem(dsc.compute.at("opFuncName"), f"{dsc.name}, the key of its DSC")


@error(_VALIDATOR + ", prose rules", "C")
def one_dsc(sdsc: Sdsc) -> Iterator[Problem]:
    """A file has one compute DSC, or data-movement DSCs instead."""
    moves = [key for key in DATA_DSCS if key in sdsc.top and sdsc.top.at(key).items()]
    if len(sdsc.dscs) + bool(moves) != 1:
        got = f"{len(sdsc.dscs)} compute DSCs" + (f" and {moves[0]}" if moves else "")
        yield Problem(f"{sdsc.top.path}.dscs_", "one compute DSC, or data-movement DSCs", got)


@error(_VALIDATOR, "C")
def target(sdsc: Sdsc) -> Iterator[Problem]:
    """The target, if one is given, is one that the back end has."""
    if "target_" in sdsc.top and sdsc.top.at("target_").text().lower() not in _TARGETS:
        yield problem(sdsc.top.at("target_"), f"one of {', '.join(sorted(_TARGETS))}")


@error(_DRAFT, "C")
def core_lists(sdsc: Sdsc) -> Iterator[Problem]:
    """Every table that is kept per core has an entry for each core and for no other."""
    for key in ("coreIdToDsc_", "coreIdToWkSlice_", "coreIdToDscSchedule"):
        if key not in sdsc.top or not sdsc.dscs:
            continue
        cores = [core for core, _ in sdsc.top.at(key).members()]
        if sorted(cores) != sorted(map(str, range(sdsc.cores))):
            yield Problem(f"{sdsc.top.path}.{key}", f"cores 0 to {sdsc.cores - 1}", _few(cores))
    for dsc in sdsc.dscs:
        ids, count = dsc.at.at("coreIdsUsed_"), dsc.at.at("numCoresUsed_")
        if ids.integers() != list(range(sdsc.cores)):
            yield problem(ids, f"the numbers 0 to {sdsc.cores - 1}")
        if count.integer() != sdsc.cores:
            yield problem(count, f"the number of cores, {sdsc.cores}")


def _few(names: list[str]) -> str:
    return f"{len(names)} cores, {', '.join(names[:8])}{' …' if len(names) > 8 else ''}"


@error(_DRAFT, "C")
def core_dsc(sdsc: Sdsc) -> Iterator[Problem]:
    """Every core is given a DSC that the file has."""
    count = max(len(sdsc.dscs), 1)
    for _, place in sdsc.top.at("coreIdToDsc_").members():
        if not 0 <= place.integer() < count:
            yield problem(place, f"a DSC number from 0 to {count - 1}")


@error(_DRAFT, "C")
def schedule_steps(sdsc: Sdsc) -> Iterator[Problem]:
    """A step of a schedule names a data DSC or a compute DSC that exists, and two sync flags."""
    if "coreIdToDscSchedule" not in sdsc.top:
        return
    moves = [len(sdsc.top.at(key).items()) for key in DATA_DSCS if key in sdsc.top]
    for _, steps in sdsc.top.at("coreIdToDscSchedule").members():
        for step in steps.items():
            numbers = step.integers()
            fits = (
                len(numbers) == 4
                and -1 <= numbers[0] < max(moves, default=0)
                and -1 <= numbers[1] < len(sdsc.dscs)
                and numbers[:2] != [-1, -1]
                and set(numbers[2:]) <= {0, 1}
            )
            if not fits:
                yield problem(step, "data DSC or -1, compute DSC or -1, not both -1, and two flags 0/1")


@error(_DRAFT, "C")
def schedules_equal(sdsc: Sdsc) -> Iterator[Problem]:
    """All cores that run one DSC have the same schedule."""
    if "coreIdToDscSchedule" not in sdsc.top:
        return
    first: dict[str, Cursor] = {}
    for core, steps in sdsc.top.at("coreIdToDscSchedule").members():
        dsc = sdsc.top.at("coreIdToDsc_").at(core).value if core in sdsc.top.at("coreIdToDsc_") else 0
        other = first.setdefault(str(dsc), steps)
        if as_list(other.value) != as_list(steps.value):
            yield problem(steps, f"the schedule of the other cores, {other.shown}")


RULES = (
    field_type, required_field, unknown_key, fork_key, back_end_key, root_key, root_name, dsc_name, one_dsc, target,
    core_lists, core_dsc, schedule_steps, schedules_equal,
)  # fmt: skip
