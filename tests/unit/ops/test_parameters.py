"""Parameters of declarations: kinds, the build, arguments that are ignored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, get_type_hints

import pytest

from spyre_mlir.ops.annotations import Lanes
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.parameters import ArgKind, Ignored, Param, adapted, parameters_of, takes_build, with_ignored
from spyre_mlir.ops.table import Table
from spyre_mlir.ops.value import Value

MODE = Ignored(Param("mode", ArgKind.STRING, required=False, default="fast"), "says how, not what")
WIDTH = Ignored(Param("width", ArgKind.INT, required=True), "follows from the tensor")
X, DIM = Param("x", ArgKind.TENSOR, required=True), Param("dim", ArgKind.INT, required=True)


def in_text(b: Build, x: Value, y: Value | None, several: Sequence[Value], some: Sequence[Value | None]) -> Value:
    """The first."""
    return x


def test_values_are_tensors_also_where_python_evaluates_the_annotations() -> None:
    evaluated = FunctionType(in_text.__code__, globals(), "evaluated")
    evaluated.__annotations__ = get_type_hints(in_text)
    for function in (in_text, evaluated):
        assert takes_build(function)
        assert [p.kind for p in parameters_of(function, builds=True)] == [ArgKind.TENSOR] * 2 + [ArgKind.TENSORS] * 2


def test_unknown_annotation_names_the_parameter() -> None:
    def complicated(x: complex) -> Lanes:
        raise NotImplementedError

    with pytest.raises(TypeError, match="complicated: parameter x is annotated 'complex'"):
        parameters_of(complicated)


def test_the_build_is_a_first_parameter_that_holds_no_argument() -> None:
    def bare(b, x: Value) -> Value:
        return x

    def without(x: Value, b: Value) -> Value:
        return x

    def keywords(*, dim: int = 0) -> int:
        return dim

    def nothing() -> None:
        return None

    assert [takes_build(f) for f in (bare, without, keywords, nothing)] == [True, False, False, False]


def test_ignored_arguments_take_their_places() -> None:
    assert with_ignored("f", [X, DIM], [MODE]) == (X, DIM, MODE.param)
    assert with_ignored("f", [X, DIM], [MODE.ahead_of("dim"), WIDTH]) == (X, MODE.param, DIM, WIDTH.param)
    assert with_ignored("f", [X, DIM], [WIDTH, MODE.ahead_of("width")]) == (X, DIM, MODE.param, WIDTH.param)


@pytest.mark.parametrize(
    ("ignores", "message"),
    [
        ([Ignored(DIM, "no")], "f: argument dim is ignored and taken"),
        ([MODE, MODE], "f: argument mode is ignored and taken, or ignored twice"),
        ([Ignored(Param("y", ArgKind.TENSORS, required=False), "no")], "f: argument y is a tensor"),
        ([MODE.ahead_of("dims")], "f: mode precedes dims, expected one of x, dim"),
    ],
)
def test_arguments_that_cannot_be_ignored(ignores: list[Ignored], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        with_ignored("f", [X, DIM], ignores)


def difference(x: Any, y: Any = 1, *, dim: int = 0) -> Any:
    return x, y, dim


def test_a_function_is_called_with_what_it_takes() -> None:
    call = adapted(difference, [MODE, WIDTH])
    assert call(7, dim=3, mode="slow", width=2) == (7, 1, 3)
    assert call(7, y=2, mode=None) == (7, 2, 0)
    assert (call.__name__, call.__module__) == (difference.__name__, difference.__module__)
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        call(7, speed=1)


def test_a_function_that_takes_everything_stays_itself() -> None:
    assert adapted(difference, []) is difference
    assert adapted(in_text, [], builds=True) is in_text


def plain(x: Value, *, dim: int = 0) -> Any:
    """The tensor."""
    return x, dim


def building(b: Build, x: Value, *, dim: int = 0) -> Any:
    """The build and the tensor."""
    return b, x, dim


@pytest.mark.parametrize(("body", "wanted"), [(plain, ("x", 2)), (building, ("build", "x", 2))])
def test_the_build_goes_to_a_body_that_takes_it(body: Callable[..., Any], wanted: tuple[object, ...]) -> None:
    composed = Table("acme").composed(aten=["f"], ignores=[MODE])(body)
    assert [p.name for p in composed.params] == ["x", "dim", "mode"]
    assert composed.ignores == (MODE,)
    assert composed.decompose is not None
    assert composed.decompose("build", x="x", dim=2, mode="slow") == wanted


def test_every_function_of_a_declaration_is_spared_what_is_ignored() -> None:
    def shape(x: tuple[int, ...], *, dim: int) -> tuple[int, ...]:
        return (*x, dim)

    def meaning(x: Lanes, *, dim: int = 0) -> Any:
        """The tensor."""
        return x, dim

    facts: dict[str, Any] = {"shape": shape, "decompose": plain, "ignores": [MODE.ahead_of("dim")]}
    entry = Table("acme").pointwise(aten=["f"], **facts)(meaning)
    assert [p.name for p in entry.params] == ["x", "mode", "dim"]
    assert entry.meaning("x", dim=2, mode="slow") == ("x", 2)
    assert entry.shape is not None
    assert entry.shape(x=(3,), dim=2, mode="slow") == (3, 2)
    assert entry.decompose is not None
    assert entry.decompose("build", x="x", dim=2, mode="slow") == ("x", 2)
