"""Parameters of operations: read from the signature of a function, and of those that its declaration ignores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, get_args, get_origin

R = TypeVar("R")


class ArgKind(Enum):
    """Kind of an argument's value."""

    TENSOR = "tensor"
    TENSORS = "tensors"
    INT = "int"
    FLOAT = "float"
    NUMBER = "number"
    BOOL = "bool"
    INTS = "ints"
    STRING = "string"
    DTYPE = "dtype"
    FLOATS = "floats"
    BOOLS = "bools"


# Spellings a declaration may use in its annotations. `from __future__ import annotations` keeps them as text.
KINDS: Mapping[str, ArgKind] = {
    "Value": ArgKind.TENSOR,
    "Sequence[Value]": ArgKind.TENSORS,
    "Sequence[Value | None]": ArgKind.TENSORS,
    "Lanes": ArgKind.TENSOR,
    "View": ArgKind.TENSOR,
    "LanesList": ArgKind.TENSORS,
    "Ranks": ArgKind.TENSOR,
    "int": ArgKind.INT,
    "float": ArgKind.FLOAT,
    "Number": ArgKind.NUMBER,
    "bool": ArgKind.BOOL,
    "Ints": ArgKind.INTS,
    "str": ArgKind.STRING,
    "DType": ArgKind.DTYPE,
    "Floats": ArgKind.FLOATS,
    "Bools": ArgKind.BOOLS,
}


@dataclass(frozen=True)
class Param:
    """One argument: its ATen name, its kind, and its default if it has one."""

    name: str
    kind: ArgKind
    required: bool
    default: object = None

    @property
    def is_tensor(self) -> bool:
        """Return whether the argument is a tensor or a list of tensors."""
        return self.kind in (ArgKind.TENSOR, ArgKind.TENSORS)


@dataclass(frozen=True)
class Ignored:
    """One argument of a schema that the functions of a declaration do not take.

    Attributes:
        param: the argument, no tensor.
        why: reason that no function needs it.
        before: argument that follows it in the schema; empty if it is behind those that the function takes.
    """

    param: Param
    why: str
    before: str = ""

    def ahead_of(self, name: str) -> Ignored:
        """The same argument in the schema of another operation, where argument `name` follows it."""
        return replace(self, before=name)


def parameters_of(function: Callable[..., Any], *, builds: bool = False) -> tuple[Param, ...]:
    """Return the parameters of a function, of one that `builds` without the `Build` if it takes one.

    Raises:
        TypeError: an annotation is none of `KINDS`; names the parameter.
    """
    params: list[Param] = []
    found = list(signature(function).parameters.values())
    for parameter in found[1:] if builds and _starts_with_build(found) else found:
        annotation = _annotation(parameter.annotation)
        if annotation not in KINDS:
            raise TypeError(
                f"{function.__name__}: parameter {parameter.name} is annotated {annotation!r}, "
                f"expected one of {', '.join(KINDS)}"
            )
        required = parameter.default is Parameter.empty
        params.append(Param(parameter.name, KINDS[annotation], required, None if required else parameter.default))
    return tuple(params)


def _annotation(said: Any) -> str:
    """The name in an annotation, without ``| None``: of text, or of what the text stands for where it is evaluated."""
    if isinstance(said, str):
        return said.removesuffix(" | None")
    if get_origin(said) is Sequence:
        return f"Sequence[{_annotation(get_args(said)[0])}]"
    alternatives = [a for a in get_args(said) if a is not type(None)]
    of_one = alternatives[0] if len(alternatives) == 1 and type(None) in get_args(said) else said
    return str(getattr(of_one, "__name__", of_one))


def takes_build(function: Callable[..., Any]) -> bool:
    """Return whether the first parameter of a function is the `Build`: one whose annotation is of no argument."""
    return _starts_with_build(list(signature(function).parameters.values()))


def _starts_with_build(parameters: Sequence[Parameter]) -> bool:
    return bool(parameters) and _annotation(parameters[0].annotation) not in KINDS


def with_ignored(name: str, taken: Sequence[Param], ignores: Sequence[Ignored]) -> tuple[Param, ...]:
    """Return the schema of operation `name`, in order: the parameters that its function takes, and ignored ones.

    Raises:
        TypeError: an argument is both, is a tensor, or precedes none that is known.
    """
    params = list(taken)
    for ignored in ignores:
        names = [p.name for p in params]
        if ignored.param.name in names:
            raise TypeError(f"{name}: argument {ignored.param.name} is ignored and taken, or ignored twice")
        if ignored.param.is_tensor:
            raise TypeError(f"{name}: argument {ignored.param.name} is a tensor, which nothing may ignore")
        if ignored.before and ignored.before not in names:
            raise TypeError(
                f"{name}: {ignored.param.name} precedes {ignored.before}, expected one of {', '.join(names)}"
            )
        params.insert(names.index(ignored.before) if ignored.before else len(names), ignored.param)
    return tuple(params)


def adapted(function: Callable[..., R], ignores: Sequence[Ignored], *, builds: bool = False) -> Callable[..., R]:
    """Return a function that may be called with every argument of a schema, and calls `function` with what it takes.

    Args:
        function: the function of a declaration.
        ignores: arguments that it does not take.
        builds: whether the call begins with a `Build`, which goes to a function that takes one.
    """
    start = int(builds and not takes_build(function))
    names = {i.param.name for i in ignores}
    if not (start or names):
        return function

    @wraps(function)
    def call(*args: Any, **named: Any) -> R:
        return function(*args[start:], **{name: value for name, value in named.items() if name not in names})

    return call
