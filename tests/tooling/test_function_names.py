"""Facts about hardware functions stand in their records: no other package has a table by the names of functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from spyre_mlir.ops.hardware_functions import FUNCTIONS
from tests.paths import ROOT

# The frontend's names are Python's and torch's; theirs may be spelled like a hardware function.
PACKAGES = ("backend", "debug", "dialects", "hw", "machine", "report", "text", "transforms")


def asked(node: ast.AST) -> list[ast.expr | None]:
    """Expressions by which a table or a comparison tells its cases apart."""
    match node:
        case ast.Dict(keys=keys):
            return list(keys)
        case ast.Set(elts=entries):
            return [*entries]
        case ast.Subscript(slice=key):
            return [key]
        case ast.MatchValue(value=value):
            return [value]
        case ast.Compare(left=left, comparators=others):
            return [left, *(e for other in others for e in (other.elts if isinstance(other, ast.Tuple) else [other]))]
        case _:
            return []


def names_in(source: str) -> Iterator[str]:
    """Names of hardware functions in tables and comparisons of a module."""
    for node in ast.walk(ast.parse(source)):
        for value in asked(node):
            if isinstance(value, ast.Constant) and value.value in FUNCTIONS:
                yield str(value.value)


@pytest.mark.parametrize(
    "planted",
    [
        'x = {"relufwd": True}',
        'x = name in {"abs", "other"}',
        'x = name == "where3"',
        'x = name not in ("exp", "log")',
        'x = FUNCTIONS["sum"]',
        'match name:\n    case "tanh":\n        pass',
    ],
)
def test_a_planted_table_is_found(planted: str) -> None:
    assert list(names_in(planted)) != []


def test_no_package_tells_hardware_functions_apart_by_name() -> None:
    modules = {path for package in PACKAGES for path in (ROOT / "spyre_mlir" / package).rglob("*.py")}
    found = {str(path.relative_to(ROOT)): names for path in modules if (names := [*names_in(path.read_text())])}
    assert found == {}
