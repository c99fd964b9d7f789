"""Application of every rule to one file's value."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.superdsc.check import addresses, compute, coordinates, division, gathers, operands, structure
from spyre_mlir.dialects.superdsc.check.json_file import SdscJson
from spyre_mlir.dialects.superdsc.check.rule import Finding, Problem, Rule, Severity, error, warning
from spyre_mlir.dialects.superdsc.codec.cursor import Cursor, Misread
from spyre_mlir.dialects.superdsc.codec.json_place import json_path
from spyre_mlir.dialects.superdsc.dialect.derived_fields import implied
from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject, same, spell
from spyre_mlir.dialects.target import in_module_for
from spyre_mlir.errors import ReadError, UnsupportedError
from spyre_mlir.hw.spec import SPYRE, SpyreSpec

_SHOWN = 60
# Keys whose usual value is a default and follows from nothing.
_DEFAULTS = frozenset({keys.MASKING, keys.MASK_CONSTANT, keys.CONSTANTS, keys.INDIRECT, keys.MAX_SIZES})


@error("published SuperDSC schema of torch-spyre's validator; draft SuperDSC interface specification", "C")
def members(_sdsc: SdscJson) -> Iterator[Problem]:
    """Every field a rule needs is present and has the type it must have."""
    # A rule whose look fails is given up for the file; `check_value` reports the place under this rule's name.
    yield from ()


@error("our readers, which run and rewrite files", "C")
def consistent(sdsc: SdscJson) -> Iterator[Problem]:
    """The verifiers of the dialect and the machine's reader find no contradiction."""
    try:
        with in_module_for(sdsc.spec, sdsc.op):
            sdsc.op.verify()
        if sdsc.dscs and isinstance(sdsc.unread, ReadError):
            raise sdsc.unread
    except Misread as misread:
        yield Problem(misread.path, misread.expected, misread.got)
    except ReadError as wrong:
        yield Problem(wrong.where or sdsc.top.path, "fields that agree", wrong.message)
    except VerifyException as wrong:
        yield Problem(sdsc.top.path, "fields that agree", str(wrong.args[0]))


@warning("hardware model of this project", "C")
def executable(sdsc: SdscJson) -> Iterator[Problem]:
    """The machine understands every feature that the file uses."""
    if not sdsc.dscs:
        yield Problem(sdsc.top.path, "a compute DSC", "none")
        return
    if isinstance(beyond := sdsc.unread, UnsupportedError):
        yield Problem(beyond.where or sdsc.top.path, "features the machine knows", beyond.message, beyond.hint)


@warning("torch-spyre code generation, real files", "C")
def usual_value(sdsc: SdscJson) -> Iterator[Problem]:
    """A field that follows from others has the value that the front end gives it."""
    for inner in sdsc.op.mirrors():
        fields = inner.fields
        for key, wanted in implied(inner.LEVEL, fields, inner.context()).items():
            if key in fields.keys() - _DEFAULTS and not same(fields[key], wanted):
                if key == keys.CORE_TO_SLICE and division.counts_by_columns(sdsc):
                    continue
                yield Problem(f"{json_path(inner)}.{key}", spell(wanted)[:_SHOWN], spell(fields[key])[:_SHOWN])


_FIRST: tuple[Rule[SdscJson], ...] = (
    *structure.RULES,
    *division.RULES,
    *operands.RULES,
    *addresses.RULES,
    *gathers.RULES,
    *coordinates.RULES,
    *compute.RULES,
)
FILE_RULES: tuple[Rule[SdscJson], ...] = (members, *_FIRST, consistent, executable, usual_value)


def check_value(value: JsonObject, file: str, spec: SpyreSpec = SPYRE) -> tuple[Finding, ...]:
    """Return all rule violations of one file's value, errors first.

    Args:
        value: the file: an object with one root key that holds an object.
        file: its name, for the findings.
        spec: the machine.
    """
    ((root, _),) = value.items()
    sdsc = SdscJson(root, Cursor(value, "$").at(root), spec)
    found: dict[Finding, None] = {}
    for rule in (*_FIRST, executable):
        found |= dict.fromkeys(_apply(rule, sdsc, file))
    if not any(one.severity is Severity.ERROR for one in found):
        found |= dict.fromkeys(_apply(consistent, sdsc, file))
    for finding in _apply(usual_value, sdsc, file):
        # The rule for everything that follows from something else says nothing where a rule of its own has spoken.
        if not any(other.path.startswith(finding.path) for other in found):
            found[finding] = None
    return tuple(sorted(found, key=lambda one: one.severity is not Severity.ERROR))


def _apply(rule: Rule[SdscJson], sdsc: SdscJson, file: str) -> Iterator[Finding]:
    try:
        for one in rule.find(sdsc):
            yield rule.finding(file, one)
    except Misread as misread:
        yield members.finding(file, Problem(misread.path, misread.expected, misread.got))
