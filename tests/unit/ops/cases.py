"""Entries of the op table, and the functions that build them, run on arrays: floats as f32, integers as i64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType, f32, i1, i64

from spyre_mlir.dialects.aten_build import result_types
from spyre_mlir.dialects.tensors import TypedValue
from spyre_mlir.errors import ConstraintError
from spyre_mlir.hw.number_formats.dl16 import FRACTION_BITS, round_trip
from spyre_mlir.machine.levels.aten import evaluate
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.parameters import ArgKind, Param
from spyre_mlir.ops.table import Family, OpEntry, Sample
from spyre_mlir.ops.value import Value

Array = NDArray[Any]
NAN, INF = float("nan"), float("inf")


Rounding = Callable[[Array], Array]


def results_of_body(
    body: Callable[..., Any], *tensors: Any, element: str = "", rounding: Rounding | None = None, **attributes: Any
) -> list[Array]:
    """What a function that builds gives for arrays.

    Args:
        body: takes a build and values.
        tensors: what the values stand for.
        element: the type that they are brought to first.
        rounding: what is done to the numbers after every step.
        attributes: the other arguments of the function.
    """

    def decompose(b: Any, tensors: list[Any]) -> Any:
        if rounding is not None:
            exactly = b.make
            b.make = lambda *given: replace(made := exactly(*given), values=rounding(made.values))
        return body(b, *(b.cast(t, element) if element and _is_tensor(t) else t for t in tensors), **attributes)

    params = (Param("tensors", ArgKind.TENSORS, required=True),)
    entry = OpEntry("body", (), params, Family.COMPOSITE, body, "", decompose=decompose, composed=True)
    return evaluate(entry, {"tensors": list(tensors)})


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Value) and value.number is None


def result_of_body(body: Callable[..., Any], *tensors: Any, **given: Any) -> Array:
    """The only result of a function that builds; see `results_of_body`."""
    (out,) = results_of_body(body, *tensors, **given)
    return out


def results(
    overload: str, *tensors: Any, element: str = "", rounding: Rounding | None = None, **attributes: Any
) -> list[Array]:
    """What an overload gives for its tensors, in the order of the entry, and its other arguments by name."""

    def body(b: Any, *values: Any) -> Any:
        return b.call_all(overload, *values, **attributes)

    return results_of_body(body, *tensors, element=element, rounding=rounding)


def result(overload: str, *tensors: Any, **given: Any) -> Array:
    """The only result of an overload; see `results`."""
    (out,) = results(overload, *tensors, **given)
    return out


def entry_of(overload: str) -> OpEntry:
    """The entry that claims an overload."""
    entry = ATEN.find(overload)
    assert entry is not None
    return entry


def made(overload: str, *tensors: Any, **given: Any) -> Array:
    """What an overload is made of gives, also where the entry says its meaning besides; see `results_of_body`."""
    body = entry_of(overload).decompose
    assert body is not None
    return result_of_body(body, *tensors, **given)


def exact_error(overload: str, wanted: Array, *tensors: Any, **attributes: Any) -> float:
    """The largest relative error of what an overload is made of, in double precision."""
    return float(np.abs(made(overload, *tensors, **attributes) / wanted - 1).max())


def ulps_off(overload: str, wanted: Array, *tensors: Any, **attributes: Any) -> float:
    """By how many units in the last place of DL16 the worst element is off, with every step rounded to that format."""
    got = made(overload, *map(round_trip, tensors), rounding=round_trip, **attributes)
    return float((np.abs(got - wanted) / 2.0 ** (np.frexp(wanted)[1] - 1 - FRACTION_BITS)).max())


def agree(got: Array, wanted: Any, *, rtol: float = 1e-12, atol: float = 0.0) -> None:
    """Fails unless two arrays have one shape, one kind of numbers, and nearly the same elements."""
    wanted = np.asarray(wanted)
    assert (got.shape, got.dtype.kind) == (wanted.shape, wanted.dtype.kind)
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol)


def entries_of(module: str) -> list[OpEntry]:
    """The entries that a module declares by what they are made of."""
    return [e for e in ATEN if e.decompose is not None and e.decompose.__module__ == module]


def budgets(module: str) -> dict[str, tuple[float, bool]]:
    """By entry: the ulps a result may be off by, and whether all operands are brought to one element type."""
    return {e.name: (e.ulps, e.promote) for e in entries_of(module)}


_ELEMENTS = {"index": i64, "indices": i64, "offsets": i64, "mask": i1}


def sample_shapes(entry: OpEntry, sample: Sample) -> list[tuple[int, ...]]:
    """Shapes of the results for a sample's arguments."""
    names = [p.name for p in entry.params if p.is_tensor]
    plain = i64 if sample.whole else i1 if entry.name.startswith("bitwise") else f32

    def typed(name: str, shape: Any) -> Any:
        if shape is None:
            return None
        if name == names[-1] and entry.name.endswith(("_number", "_value_reduced")):
            return 3
        if isinstance(shape, tuple) and not all(isinstance(e, int) for e in shape):
            return [typed(name, s) for s in shape]
        is_class = name == "target" and shape != sample.shapes[0]
        return TypedValue(TensorType(i64 if is_class else _ELEMENTS.get(name, plain), shape))

    given = {name: typed(name, shape) for name, shape in zip(names, sample.shapes, strict=False)}
    bound = {p.name: p.default for p in entry.params} | given | dict(sample.attributes)
    return [t.get_shape() for t in result_types(entry, bound)]


def check_samples(module: str) -> None:
    """Fails unless every sample of a module's entries fits, or breaks the constraint that it names."""
    for entry in entries_of(module):
        for sample in entry.samples:
            if sample.breaks is None:
                assert all(0 not in shape for shape in sample_shapes(entry, sample)), sample
            else:
                with pytest.raises(ConstraintError, match=f" {sample.breaks}: "):
                    sample_shapes(entry, sample)


def calls(overload: str, *tensors: Any, **attributes: Any) -> list[str]:
    """The overloads that a call of one comes to, itself first."""
    called: list[str] = []

    def body(b: Any, *values: Any) -> Any:
        call = b.call

        def noted(name: str, *given: Any, **said: Any) -> Any:
            called.append(name)
            return call(name, *given, **said)

        b.call = noted
        return b.call(overload, *values, **attributes)

    result_of_body(body, *tensors)
    return called
