"""Half precision is what most models of this card come in: ops in float16 and bfloat16, in every form they have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from spyre_mlir.dialects.aten_build import AtenBuild
from spyre_mlir.dialects.tensors import TypedValue
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend import import_program
from spyre_mlir.frontend.element_types import tensor_type
from spyre_mlir.ops.table import OpEntry, Sample
from tests.end_to_end.ops import cases
from tests.end_to_end.ops.forms import checked
from tests.end_to_end.ops.threshold_inputs import distinct
from tests.end_to_end.ops.thresholds import THRESHOLDS
from tests.functions import FunctionModel
from tests.opinfo.compare import SELECTING

pytestmark = [
    pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:torch.*"),
]
HALVES = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
# Numbers that small samples lie below, and under which they take the form of large ones.
BEYOND = {place: t.patched for t in THRESHOLDS.values() if not t.host for place in t.places if place.startswith("ops")}
FORMS = pytest.mark.parametrize("numbers", [{}, BEYOND], ids=["as they are", "beyond the thresholds"])


class _Types(AtenBuild):
    """Finds the types of a decomposition and computes nothing."""

    inside = True

    def make(self, overload: str, entry: OpEntry, bound: Any, result: TensorType[Attribute]) -> TypedValue:
        return TypedValue(result)


def _tensors(given: dict[str, Any], dtype: torch.dtype) -> dict[str, Any]:
    """Arguments with tensors for arrays, floats in an element type."""

    def tensor(value: Any) -> Any:
        if isinstance(value, list):
            return [tensor(v) for v in value]
        if not isinstance(value, np.ndarray):
            return value
        made = torch.from_numpy(value)
        return made.to(dtype) if made.is_floating_point() else made

    return {name: tensor(value) for name, value in given.items()}


def _called(overload: str, given: dict[str, Any]) -> list[Tensor]:
    positional, keywords = [], {}
    for argument in cases.schema(overload):
        name = argument.name if argument.name in given else cases.ALIASES.get(argument.name)
        value = cases._to_torch(given.get(name), str(argument.type))
        if not argument.kwarg_only:
            positional.append(value)
        elif value is not None:
            keywords[argument.name] = value
    out = cases.torch_op(overload)(*positional, **keywords)
    return [out] if isinstance(out, Tensor) else list(out)


def _typed(value: Any) -> Any:
    if isinstance(value, list):
        return [_typed(v) for v in value]
    return TypedValue(tensor_type(value)) if isinstance(value, Tensor) else value


def _wrong_types(entry: OpEntry, overload: str, sample: Sample, dtype: torch.dtype) -> str:
    """How the types of a decomposition differ from torch's; "" if they do not, or if there is none."""
    given = _tensors(cases.arguments(entry, overload, sample), dtype)
    try:
        wanted = [tensor_type(t) for t in _called(overload, given)]
    except (RuntimeError, NotImplementedError):
        return ""  # torch has no half precision of it
    try:
        made = _Types().results(entry, {n: _typed(v) for n, v in given.items() if entry.param(n) is not None})
    except UnsupportedError:
        return ""
    got = [v.type for v in made or ()]
    return f"{overload} {sample.shapes}: {got}, torch {wanted}" if got and got != wanted else ""


@pytest.mark.parametrize(
    ("dtype", "numbers"),
    [
        (torch.float16, BEYOND),
        *(
            pytest.param(d, n, marks=pytest.mark.slow(reason="the suite halves runs every type and form"))
            for d in (torch.bfloat16, torch.float32)
            for n in ({}, BEYOND)
        ),
        pytest.param(torch.float16, {}, marks=pytest.mark.slow(reason="the suite halves runs every type and form")),
    ],
)
def test_decompositions_keep_the_types_of_torch(
    dtype: torch.dtype, numbers: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every decomposition of the op table, on every sample, gives results of the types that torch gives."""
    for place, number in numbers.items():
        monkeypatch.setattr(f"spyre_mlir.{place}", number)
    tried = [(e, o, s) for e, o, s in cases.good_cases() if e.decompose is not None]
    wrong = [what for e, o, s in tried if (what := _wrong_types(e, o, s, dtype))]
    assert wrong == []


def picked(*shape: int, most: int) -> Tensor:
    return torch.randint(0, most, shape, generator=torch.Generator().manual_seed(3))


def image_features(x: Tensor, mask: Tensor, features: Tensor) -> Tensor:
    return x.masked_scatter(mask[..., None].expand_as(x), features)


X = torch.randn(64, 64, generator=torch.Generator().manual_seed(1))
LARGE: dict[str, tuple[Callable[..., Any], Sequence[Tensor]]] = {
    "flip": (lambda x: x.flip(-1), (X,)),
    "flip_of_rows": (lambda x: x.flip(0), (X,)),
    "index_put": (lambda x, v, i, j: x.index_put((i, j), v), (X, X[0], picked(64, most=64), picked(64, most=64))),
    "put": (lambda x, v, i: x.put(i, v), (X, X[:, 0], torch.randperm(4096)[:64])),
    "masked_scatter": (image_features, (X[None, :16], torch.arange(16)[None] % 3 == 0, X[:6] + 3)),
}


@HALVES
@pytest.mark.parametrize("name", LARGE)
def test_large_tensors_of_half_precision(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    function, wide = LARGE[name]
    inputs = tuple(x.to(dtype) if x.is_floating_point() else x for x in wide)
    checked(import_program(FunctionModel(function), inputs), function, inputs, {}, monkeypatch)


@pytest.mark.slow(reason="the suite halves runs every sample")
@FORMS
@HALVES
@pytest.mark.parametrize(("entry", "overload", "sample"), cases.good_cases(), ids=cases.case_id)
def test_every_sample_in_half_precision(
    entry: OpEntry,
    overload: str,
    sample: Sample,
    dtype: torch.dtype,
    numbers: dict[str, float],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every sample of the op table, down to loops, gives what torch gives for the same numbers in double precision."""
    given = _tensors(cases.arguments(entry, overload, sample), dtype)
    if overload.partition(".")[0] in SELECTING:  # of equal elements any will do
        shuffled = distinct(1, given["self"].numel())(dtype)[0]
        given["self"] = shuffled.reshape(given["self"].shape)
    names = [n for n, v in given.items() if isinstance(v, Tensor)]
    lists = {n: len(v) for n, v in given.items() if isinstance(v, list)}

    def function(*tensors: Tensor) -> Any:
        queue = list(tensors)
        own = {n: queue.pop(0) for n in names}
        own |= {n: [queue.pop(0) for _ in range(count)] for n, count in lists.items()}
        return tuple(_called(overload, given | own))

    inputs = [given[n] for n in names] + [x for n in lists for x in given[n]]
    try:
        function(*inputs)
    except (NotImplementedError, RuntimeError) as error:
        pytest.skip(f"torch has no half precision of it: {str(error)[:60]}")
    checked(import_program(FunctionModel(function), tuple(inputs)), function, inputs, numbers, monkeypatch)


def test_running_statistics_of_half_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eager leaves them half precision, tracing says float32: the numbers are eager's, the type is the traced one."""

    def function(x: Tensor, mean: Tensor, var: Tensor) -> Any:
        return torch.ops.aten._native_batch_norm_legit_functional(x, None, None, mean, var, True, 0.1, 1e-5)

    inputs = (X.half()[:6, :4], X.half()[0, :4], X.half()[1, :4].abs() + 1)
    checked(import_program(FunctionModel(function), inputs), function, inputs, {}, monkeypatch)


def test_an_operation_of_two_results_called_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(x: Tensor) -> Any:
        return torch.ops.aten.log_sigmoid_forward(x)

    checked(import_program(FunctionModel(function), (X,)), function, (X,), {}, monkeypatch)
