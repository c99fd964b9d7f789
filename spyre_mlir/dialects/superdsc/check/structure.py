"""Rules about the structure of a file: places of keys, number of DSCs, work of each core."""

from __future__ import annotations

import re
from collections.abc import Iterator

from spyre_mlir.dialects.superdsc.check.json_file import DATA_DSCS, SdscJson
from spyre_mlir.dialects.superdsc.check.rule import Problem, error, problem, warning
from spyre_mlir.dialects.superdsc.check.sources import DRAFT, FRONT_END, SCHEMA
from spyre_mlir.dialects.superdsc.codec.cursor import Cursor
from spyre_mlir.dialects.superdsc.dialect.verify import is_kind
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.fields import FieldWriter
from spyre_mlir.dialects.superdsc.model.json_value import as_list

_SMALLEST, _LARGEST = -(2**63), 2**64 - 1  # of a signed and of an unsigned number of 64 bits
_ROOT = re.compile(r"[A-Za-z0-9_/-]+")
_REQUIRED_TOP = (
    keys.CORE_FOLD, keys.CORELET_FOLD, keys.CORES_USED, keys.CORE_TO_DSC, keys.SCHEDULE, keys.DSCS,
)  # fmt: skip
_REQUIRED_DSC = (keys.CORES_USED, keys.CORE_IDS, keys.SIZES, keys.SCHEDULE_TREE, keys.LABELED_DS, keys.COMPUTE)


@error(SCHEMA + "; our tables of keys", "C")
def field_type(sdsc: SdscJson) -> Iterator[Problem]:
    """Every known key holds a value of its JSON type."""
    for member in sdsc.members:
        if member.field is not None and not is_kind(member.field.kind, member.value):
            yield problem(Cursor(member.value, member.path), member.field.kind.value)


@error("our model of the format, from the published schemas and real files", "C")
def field_value(sdsc: SdscJson) -> Iterator[Problem]:
    """A key that holds one of a few words or numbers holds one of those."""
    for member in sdsc.members:
        if member.field is None or not (allowed := member.field.allowed):
            continue
        # A false flag and the number 0 are spelled alike in public files.
        spelled = str(int(member.value) if isinstance(member.value, bool) else member.value).lower()
        if spelled not in map(str.lower, allowed):
            yield problem(Cursor(member.value, member.path), f"one of {', '.join(allowed)}")


@error("the public tools are C++ and keep numbers in 64 bits; real files hold unsigned ones", "L")
def number_range(sdsc: SdscJson) -> Iterator[Problem]:
    """Every integer fits into 64 bits, signed or unsigned."""
    rest = [sdsc.top]
    while rest:
        place = rest.pop()
        if isinstance(place.value, dict):
            rest += [member for _, member in place.members()]
        elif isinstance(place.value, list):
            rest += place.items()
        elif isinstance(place.value, int) and not _SMALLEST <= place.value <= _LARGEST:
            yield problem(place, f"a number from {_SMALLEST} to {_LARGEST}")


@error(DRAFT + ", required members", "C")
def required_field(sdsc: SdscJson) -> Iterator[Problem]:
    """The keys that a reader cannot do without are there."""
    wanted = [(sdsc.top, _REQUIRED_TOP), *((dsc.at, _REQUIRED_DSC) for dsc in sdsc.dscs)]
    for place, needed in wanted:
        members = dict(place.members())
        for key in needed:
            if key not in members:
                yield problem(place, f"a member {key!r}", f"members {list(members)}")


@warning("list of the keys that public sources name; the back end is said to ignore others", "L")
def unknown_key(sdsc: SdscJson) -> Iterator[Problem]:
    """No key is one that no public source names; such keys are kept."""
    for member in sdsc.members:
        if member.field is None:
            yield Problem(member.path, "a key of the format", member.key, "drop the key, or check its spelling")


@warning("real files of research builds of the front end", "L")
def research_key(sdsc: SdscJson) -> Iterator[Problem]:
    """No key is one that only research builds of the front end write."""
    for member in sdsc.members:
        if member.field is not None and member.field.writer is FieldWriter.RESEARCH:
            yield Problem(member.path, "a key of the published front end", member.key, "drop the key")


@warning("a real file that the back end wrote", "L")
def back_end_key(sdsc: SdscJson) -> Iterator[Problem]:
    """No key is one that only the back end writes."""
    found = ""
    for member in sdsc.members:
        by_back_end = member.field is not None and member.field.writer is FieldWriter.BACK_END
        if by_back_end and not (found and member.path.startswith((f"{found}.", f"{found}["))):
            found = member.path
            yield Problem(found, "a key that a front end writes", member.key, "give the back end the file before it")


@error(SCHEMA, "C")
def root_key(sdsc: SdscJson) -> Iterator[Problem]:
    """The root key is made of letters, digits, `_`, `/` and `-`."""
    if not _ROOT.fullmatch(sdsc.root):
        yield Problem("$", "a root key of letters, digits, _, / and -", repr(sdsc.root))


@warning(FRONT_END, "C")
def root_name(sdsc: SdscJson) -> Iterator[Problem]:
    """The root key is the op's number in the bundle, `_`, and the function's name."""
    for dsc in sdsc.dscs:
        number, _, name = sdsc.root.partition("_")
        if not (number.isascii() and number.isdigit()) or name != dsc.function:
            yield Problem("$", f"a root key such as 0_{dsc.function}", repr(sdsc.root))


@error(FRONT_END, "C")
def dsc_name(sdsc: SdscJson) -> Iterator[Problem]:
    """The key of a DSC is the name of its function."""
    for dsc in sdsc.dscs:
        if dsc.name != dsc.function:
            yield problem(dsc.compute.at(keys.FUNCTION), f"{dsc.name}, the key of its DSC")


@error(SCHEMA + ", prose rules; files of research builds hold both", "L")
def one_dsc(sdsc: SdscJson) -> Iterator[Problem]:
    """A file has one compute DSC, or data-movement DSCs instead."""
    moves = [key for key in DATA_DSCS if key in sdsc.top and sdsc.top.at(key).items()]
    if len(sdsc.dscs) + bool(moves) != 1:
        got = f"{len(sdsc.dscs)} compute DSCs" + (f" and {moves[0]}" if moves else "")
        yield Problem(f"{sdsc.top.path}.dscs_", "one compute DSC, or data-movement DSCs", got)


@error(DRAFT, "C")
def core_lists(sdsc: SdscJson) -> Iterator[Problem]:
    """Every table that is kept per core has an entry for each core and for no other."""
    for key in (keys.CORE_TO_DSC, keys.CORE_TO_SLICE, keys.SCHEDULE):
        if key not in sdsc.top or not sdsc.dscs:
            continue
        cores = [core for core, _ in sdsc.top.at(key).members()]
        if sorted(cores) != sorted(map(str, range(sdsc.cores))):
            yield Problem(f"{sdsc.top.path}.{key}", f"cores 0 to {sdsc.cores - 1}", _few(cores))
    for dsc in sdsc.dscs:
        ids, count = dsc.at.at(keys.CORE_IDS), dsc.at.at(keys.CORES_USED)
        if ids.integers() != list(range(sdsc.cores)):
            yield problem(ids, f"the numbers 0 to {sdsc.cores - 1}")
        if count.integer() != sdsc.cores:
            yield problem(count, f"the number of cores, {sdsc.cores}")


def _few(names: list[str]) -> str:
    return f"{len(names)} cores, {', '.join(names[:8])}{' …' if len(names) > 8 else ''}"


@error(DRAFT, "C")
def core_dsc(sdsc: SdscJson) -> Iterator[Problem]:
    """Every core is given a DSC that the file has."""
    count = max(len(sdsc.dscs), 1)
    for _, place in sdsc.top.at(keys.CORE_TO_DSC).members():
        if not 0 <= place.integer() < count:
            yield problem(place, f"a DSC number from 0 to {count - 1}")


@error(DRAFT, "C")
def schedule_steps(sdsc: SdscJson) -> Iterator[Problem]:
    """A step of a schedule names a data DSC or a compute DSC that exists, and two sync flags."""
    if keys.SCHEDULE not in sdsc.top:
        return
    moves = [len(sdsc.top.at(key).items()) for key in DATA_DSCS if key in sdsc.top]
    for _, steps in sdsc.top.at(keys.SCHEDULE).members():
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


@error(DRAFT + "; files of research builds with data DSCs differ", "L")
def schedules_equal(sdsc: SdscJson) -> Iterator[Problem]:
    """All cores that run one DSC have the same schedule."""
    if keys.SCHEDULE not in sdsc.top:
        return
    first: dict[str, Cursor] = {}
    for core, steps in sdsc.top.at(keys.SCHEDULE).members():
        dsc = sdsc.top.at(keys.CORE_TO_DSC).at(core).value if core in sdsc.top.at(keys.CORE_TO_DSC) else 0
        other = first.setdefault(str(dsc), steps)
        if as_list(other.value) != as_list(steps.value):
            yield problem(steps, f"the schedule of the other cores, {other.shown}")


RULES = (
    field_type, field_value, number_range, required_field, unknown_key, research_key, back_end_key, root_key, root_name,
    dsc_name, one_dsc, core_lists, core_dsc, schedule_steps, schedules_equal,
)  # fmt: skip
