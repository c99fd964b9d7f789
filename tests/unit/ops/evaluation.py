"""Entries of the op table and the helpers of compositions, run on arrays whose numpy type says the element type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from typing_extensions import override
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from spyre_mlir.dialects.aten_build import TypeBuild, result_shapes
from spyre_mlir.dialects.aten_value import AtenValue, Raw, value_of
from spyre_mlir.dialects.tensors import ELEMENTS, TypedValue
from spyre_mlir.errors import ConstraintError
from spyre_mlir.machine.levels.aten import evaluate
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.parameters import ArgKind, Param
from spyre_mlir.ops.table import Family, OpEntry, Sample
from spyre_mlir.ops.value import Value

Array = NDArray[Any]
Body = Callable[..., Any]
NAN, INF = float("nan"), float("inf")
# What stands for float32 is float64: nothing is rounded inside an operation.
_NAMES = {
    "float64": "f32",
    "float16": "f16",
    "float8_e4m3fn": "f8E4M3FN",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "ui8",
    "bool": "i1",
}


def entry_of(overload: str) -> OpEntry:
    """The entry that claims an overload."""
    entry = ATEN.find(overload)
    assert entry is not None, overload
    return entry


def run(body: Body, *tensors: Any) -> list[Array]:
    """What `body(b, *values)` gives, an array per result; nothing if it gives None."""

    def decompose(b: Any, tensors: list[Any]) -> Any:
        pairs = zip(tensors, given, strict=True)
        return body(b, *(_cast(b, value, array) for value, array in pairs))

    given = list(tensors)
    params = (Param("tensors", ArgKind.TENSORS, required=True),)
    entry = OpEntry("body", (), params, Family.COMPOSITE, body, "", decompose=decompose, composed=True)
    return evaluate(entry, {"tensors": [_plain(t) for t in given]})


def _plain(given: Any) -> Any:
    if isinstance(given, list):
        return [_plain(g) for g in given]
    if isinstance(given, np.ndarray) and given.dtype.kind in "Vf":
        return given.astype(np.float64)
    return given


def _cast(b: Any, value: Any, given: Any) -> Any:
    if isinstance(given, list):
        return [_cast(b, v, g) for v, g in zip(value, given, strict=True)]
    return b.cast(value, _NAMES[given.dtype.name]) if isinstance(given, np.ndarray) else value


def calling(overload: str, **attributes: Any) -> Body:
    """A body that calls one overload: its tensors in the order of the entry, the other arguments by name."""
    return lambda b, *values: b.call_all(overload, *values, **attributes)


def taking_apart(overload: str, **attributes: Any) -> Body:
    """A body that builds an overload from its parts, also where the entry has a meaning of its own."""
    entry = entry_of(overload)
    names = [p.name for p in entry.params if p.is_tensor]

    def body(b: Any, *values: Any) -> Any:
        bound = {p.name: p.default for p in entry.params} | dict(zip(names, values, strict=False)) | attributes
        return cast(Body, entry.decompose)(b, **bound)

    return body


def results(overload: str, *tensors: Any, **attributes: Any) -> list[Array]:
    """What an overload gives, an array per result."""
    return run(calling(overload, **attributes), *tensors)


def result(overload: str, *tensors: Any, **attributes: Any) -> Array:
    """The only result of an overload."""
    (out,) = results(overload, *tensors, **attributes)
    return out


class _Recorder(TypeBuild):
    """Finds types, and notes the operations that are made."""

    def __init__(self) -> None:
        self.made: list[str] = []

    @override
    def make(self, overload: str, entry: OpEntry, bound: Mapping[str, Any], result: TensorType[Attribute]) -> Raw:
        self.made.append(overload)
        return super().make(overload, entry, bound, result)


def typed(given: Any) -> Any:
    """The type of an array, of each array of a list, or what is no array as it is."""
    if isinstance(given, list):
        return [typed(g) for g in given]
    if isinstance(given, np.ndarray):
        return TypedValue(TensorType(ELEMENTS[_NAMES[given.dtype.name]], given.shape))
    return given


def made(body: Body, *tensors: Any) -> list[str]:
    """The operations that a body makes, in order; nothing is computed."""
    build = _Recorder()
    body(build, *(value_of(build, typed(t), is_tensor=True) for t in tensors))
    return build.made


def types(body: Body, *tensors: Any) -> list[tuple[tuple[int, ...], str]]:
    """Shape and element type of every result of a body; nothing is computed."""
    build = TypeBuild()
    out = body(build, *(value_of(build, typed(t), is_tensor=True) for t in tensors))
    return [(v.shape, v.element) for v in (out if isinstance(out, tuple) else (out,))]


def a_value(array: Array | float) -> Value:
    """A value that nothing is called on."""
    return AtenValue(TypeBuild(), typed(array))


def same(got: Array, wanted: Any, *, rtol: float = 1e-12, atol: float = 1e-12) -> None:
    """Fails unless two arrays have one shape and one kind of numbers, and the same elements."""
    wanted = np.asarray(wanted)
    assert (got.shape, got.dtype.kind) == (wanted.shape, wanted.dtype.kind)
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol)


def all_same(got: list[Array], wanted: Any, *, rtol: float = 1e-12, atol: float = 1e-12) -> None:
    """Fails unless lists of arrays are the same one by one."""
    for one, other in zip(got, wanted, strict=True):
        same(one, other, rtol=rtol, atol=atol)


def entries_in(module: str) -> list[OpEntry]:
    """The entries that a module declares."""
    return [e for e in ATEN if module in (e.meaning.__module__, getattr(e.decompose, "__module__", None))]


def budgets(module: str) -> dict[str, tuple[float, bool]]:
    """By entry of a module: the ulps its result may be off by, and whether operands are brought to one type first."""
    return {e.name: (e.ulps, e.promote) for e in entries_in(module)}


def defaults(module: str) -> set[tuple[str, Any]]:
    """Arguments of a module's entries with their defaults; tensors that may be absent are left out."""
    return {(p.name, p.default) for e in entries_in(module) for p in e.params if not (p.required or p.is_tensor)}


def check_samples(module: str) -> None:
    """Fails unless every sample of a module's entries fits, or breaks the constraint that it says."""
    for entry in entries_in(module):
        assert entry.samples, entry.name
        for sample in entry.samples:
            if sample.breaks is None:
                assert result_shapes(entry, _bound(entry, sample))
            else:
                with pytest.raises(ConstraintError, match=f"{sample.breaks}: "):
                    _judged(entry, sample)


def _judged(entry: OpEntry, sample: Sample) -> None:
    if entry.composed or entry.shape is not None:
        result_shapes(entry, _bound(entry, sample))
    else:
        entry.meaning(*map(np.zeros, sample.shapes), **sample.attributes)


def _bound(entry: OpEntry, sample: Sample) -> dict[str, Any]:
    bound = {p.name: p.default for p in entry.params} | dict(sample.attributes)
    for param, shape in zip((p for p in entry.params if p.is_tensor), sample.shapes, strict=False):
        kind = np.int64 if param.name in ("index", "indices") else np.float64
        several = param.kind is ArgKind.TENSORS
        arrays = [np.zeros(s, kind) for s in (shape if several else [] if shape is None else [shape])]
        bound[param.name] = typed(arrays if several else arrays[0] if arrays else None)
    return bound
