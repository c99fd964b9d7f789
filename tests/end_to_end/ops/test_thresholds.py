"""Either side of every number that chooses between two forms of an operation, in every float, against torch."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from types import ModuleType

import pytest
import torch

import spyre_mlir
from spyre_mlir.frontend import import_program
from tests.end_to_end.ops.forms import CAP, PACKAGE, checked, compare, form, leaves, lowered
from tests.end_to_end.ops.no_form import NO_FORM
from tests.end_to_end.ops.thresholds import BY_VALUE, FLOATS, NEVER, THRESHOLDS, Threshold
from tests.functions import FunctionModel

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
ROOMS = ("ops", "transforms")
ORDERINGS = ("gt", "ge", "lt", "le")
# How far one rounding to the element type of a result may lead.
ROUNDED = {torch.float32: 2.0**-23, torch.float16: 2.0**-10, torch.bfloat16: 2.0**-7}

NAMES = sorted(THRESHOLDS)
SIDES = pytest.mark.parametrize("side", ["near", "far"])
# Compositions name float32 nowhere: one of the half precisions shows most of what goes wrong.
IN_EVERY_RUN = (torch.float16,)
DTYPES = pytest.mark.parametrize("dtype", FLOATS, ids=str)
MOST_DTYPES = pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(d, marks=[] if d in IN_EVERY_RUN else pytest.mark.slow(reason="the suite halves runs every type"))
        for d in FLOATS
    ],
    ids=str,
)


@MOST_DTYPES
@pytest.mark.parametrize("name", NAMES)
def test_both_forms_are_those_of_torch(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small inputs, the number itself moved: each side has its form, and both give what torch gives."""
    threshold = THRESHOLDS[name]
    if not threshold.floats and dtype is not torch.float16:
        pytest.skip("no floats in it")
    inputs = threshold.small(dtype)
    program = import_program(FunctionModel(threshold.function), inputs)
    forms = [
        checked(program, threshold.function, inputs, patches, monkeypatch)
        for patches in (threshold.always, {**threshold.always, **threshold.patches})
    ]
    assert forms[0] != forms[1], "the number does not change the form"


@pytest.mark.slow(reason="real sizes take minutes")
@SIDES
@DTYPES
@pytest.mark.parametrize("name", NAMES)
def test_real_sizes_are_those_of_torch(
    name: str, dtype: torch.dtype, side: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number as it is, and inputs on either side of it: compiled, run from the files, equal to torch."""
    threshold = THRESHOLDS[name]
    if not threshold.floats and dtype is not torch.float16:
        pytest.skip("no floats in it")
    near = side == "near"
    function = (threshold.near if near else threshold.far) or threshold.function
    inputs = threshold.real[0 if near else 1](dtype)
    compiled = spyre_mlir.compile(FunctionModel(function), inputs, numerics="exact")
    assert bool(compiled.host_steps) == (threshold.host and not near)
    if not threshold.host:
        other = dict.fromkeys(threshold.places, threshold.patched if near else _beyond(threshold))
        other_side = lowered(compiled._program, other, monkeypatch)
        assert form(compiled._lowered) != form(other_side), "the inputs do not lie on this side of the number"
    # The host's own float32 is eager's, which places on a grid take further from double precision than one rounding.
    reference = (lambda *_: function(*inputs)) if threshold.host and not near and dtype is torch.float32 else function
    compare(leaves(compiled(*inputs)), reference, inputs, ROUNDED[dtype])


@MOST_DTYPES
@pytest.mark.parametrize("name", BY_VALUE)
def test_both_sides_of_values_are_those_of_torch(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, function, make = BY_VALUE[name]
    inputs = make(dtype)
    checked(import_program(FunctionModel(function), inputs), function, inputs, {}, monkeypatch)


def test_every_number_that_sizes_are_compared_with_is_listed() -> None:
    listed = {place for threshold in THRESHOLDS.values() for place in threshold.places}
    listed |= {place for places, _, _ in BY_VALUE.values() for place in places}
    found = {place for room in ROOMS for path in (PACKAGE / room).rglob("*.py") for place in compared_numbers(path)}
    assert found - listed - NO_FORM.keys() == set(), "list them in thresholds.py or no_form.py"
    assert (listed | NO_FORM.keys()) - found <= {CAP}, "these are compared with nothing"


def test_a_number_nobody_listed_is_found() -> None:
    home = "spyre_mlir.ops.composed.reductions.cumulative"
    compared = "f = lambda n, x: n > MOST or n <= SQUARE or x.gt(TOP)"
    source = f"from {home} import SQUARE\nMOST, LEAST, TOP = 7, 1, 9\n{compared}\n"
    module = ModuleType("acme")
    exec(source, vars(module))  # noqa: S102 - the line above
    assert set(numbers_compared(ast.parse(source), module)) == {"MOST", "SQUARE", "TOP"}


def numbers_compared(tree: ast.Module, module: ModuleType) -> Iterator[str]:
    """Names of numbers of a module, its own or imported, that something is compared with or bounded by."""
    for node in ast.walk(tree):
        compared = isinstance(node, ast.Compare) and any(
            isinstance(o, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for o in node.ops
        )
        if not compared and not (isinstance(node, ast.Call) and _orders(node)):
            continue
        sides = node.args if isinstance(node, ast.Call) else [node]
        names = (n for side in sides for n in ast.walk(side) if isinstance(n, ast.Name))
        for name in {n.id for n in names if n.id.isupper()}:
            value = getattr(module, name, None)
            if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
                yield name


def _orders(call: ast.Call) -> bool:
    """Whether a call is min or max, or compares values of a composition."""
    if isinstance(call.func, ast.Name):
        return call.func.id in ("min", "max")
    return isinstance(call.func, ast.Attribute) and call.func.attr in ORDERINGS


def compared_numbers(path: Path) -> set[str]:
    """As `numbers_compared`, of a file of the package."""
    place = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    module = importlib.import_module(f"{PACKAGE.name}.{place}")
    return {f"{place}.{name}" for name in numbers_compared(ast.parse(path.read_text(encoding="utf-8")), module)}


def _beyond(threshold: Threshold) -> float:
    """The number under which inputs of the far side take the near form."""
    return 0 if threshold.patched == NEVER else NEVER
