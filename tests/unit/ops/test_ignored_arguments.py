"""Ignored arguments, against torch's schemas, and against the functions that do not take them."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature, unwrap
from typing import Any

import pytest
import torch

from spyre_mlir.ops import ATEN, ignored_arguments
from spyre_mlir.ops.native.collectives import NAMESPACE, RANKS
from spyre_mlir.ops.parameters import ArgKind, Ignored, takes_build
from spyre_mlir.ops.table import OpEntry

IGNORING = [(entry, ignored) for entry in ATEN for ignored in entry.ignores]
# Of operators that torch has no schema of: ours, and those of torch-spyre and ibm-fms.
WITHOUT_SCHEMA = {("resample", "dtype"), ("tile_dim_marker", "dim"), ("expert_mm", "padding_size")}
OURS = {RANKS}  # arguments that torch's operators do not have
TYPES = {
    ArgKind.BOOL: {"bool", "Optional[bool]"},
    ArgKind.DTYPE: {"Optional[int]"},  # torch counts its element types
    ArgKind.INT: {"int", "Optional[int]"},
    ArgKind.INTS: {"List[int]"},
    ArgKind.NUMBER: {"float"},
    ArgKind.STRING: {"int", "Optional[int]", "Any"},  # and its orders in memory; a group is named or given
}
ROW_MAJOR = 0  # torch's number of the only order in memory that a declaration calls None


def schemas(entry: OpEntry) -> list[Any]:
    """torch's schemas of an entry's overloads."""
    names = (o.partition(".") for o in entry.overloads if "::" not in o)
    found = [getattr(getattr(torch.ops.aten, name), overload or "default")._schema for name, _, overload in names]
    exchanges = (o.partition("::")[2] for o in entry.overloads if o.startswith(f"{NAMESPACE}::"))
    return found + [getattr(getattr(torch.ops, NAMESPACE), name).default._schema for name in exchanges]


def of_schemas(entry: OpEntry, name: str) -> list[Any]:
    """The arguments of a name in torch's schemas of an entry's overloads."""
    return [a for schema in schemas(entry) for a in schema.arguments if a.name == name]


def case_id(value: object) -> str:
    return value.name if isinstance(value, OpEntry) else value.param.name if isinstance(value, Ignored) else ""


@pytest.mark.parametrize(("entry", "ignored"), IGNORING, ids=case_id)
def test_an_ignored_argument_is_of_the_schema(entry: OpEntry, ignored: Ignored) -> None:
    if (entry.name, ignored.param.name) in WITHOUT_SCHEMA:
        assert not schemas(entry)
        return
    found = of_schemas(entry, ignored.param.name)
    if ignored.param.name in OURS:
        assert not found
        return
    assert found, f"no overload of {entry.name} has an argument {ignored.param.name}"
    assert {str(a.type) for a in found} <= TYPES[ignored.param.kind]
    defaults = [a.default_value for a in found if a.has_default_value()]
    # The entry's default serves overloads that lack the argument as well, or take it without a default.
    assert not (ignored.param.required and defaults)
    if ignored.param.kind is ArgKind.STRING:
        defaults = [None if d == ROW_MAJOR else d for d in defaults]
    default = ignored.param.default
    assert all((type(d), d) == (type(default), default) for d in defaults)
    assert ignored.param.required <= (len(found) == len(schemas(entry)))


@pytest.mark.parametrize(("entry", "ignored"), IGNORING, ids=case_id)
def test_an_ignored_argument_stands_where_the_schema_has_it(entry: OpEntry, ignored: Ignored) -> None:
    taken = [p.name for p in entry.params if not p.is_tensor and p not in [i.param for i in entry.ignores]]
    names = [p.name for p in entry.params]
    behind = [n for n in names[names.index(ignored.param.name) :] if n in taken]
    for schema in schemas(entry):
        order = [a.name for a in schema.arguments]
        if ignored.param.name in order:
            assert [n for n in order[order.index(ignored.param.name) :] if n in taken] == behind


def functions(entry: OpEntry) -> list[Callable[..., Any]]:
    """The functions of a declaration that take all arguments: what it means, unless its parts say it, and its body."""
    return [f for f in (None if entry.composed else entry.meaning, entry.decompose) if f is not None]


@pytest.mark.parametrize("entry", list(ATEN), ids=case_id)
def test_functions_take_the_schema_but_for_what_is_ignored(entry: OpEntry) -> None:
    ignored = {i.param.name for i in entry.ignores}
    wanted = [p.name for p in entry.params if p.name not in ignored]
    for function in map(unwrap, functions(entry)):
        parameters = list(signature(function).parameters.values())
        if function is unwrap(entry.decompose or str) and takes_build(function):
            del parameters[0]
        rest = any(p.kind is Parameter.VAR_KEYWORD for p in parameters)
        taken = [p.name for p in parameters if p.kind is not Parameter.VAR_KEYWORD]
        assert taken == [n for n in wanted if n in taken or not rest], function


def test_every_ignored_argument_is_declared_once_and_has_a_reason() -> None:
    declared = [v for v in vars(ignored_arguments).values() if isinstance(v, Ignored)]
    used = {(i.param, i.why) for _, i in IGNORING}
    assert {(i.param, i.why) for i in declared} == used
    assert len(declared) == len(used)
    assert all(i.why and not i.before for i in declared)
