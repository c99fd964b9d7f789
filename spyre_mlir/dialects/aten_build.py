"""The `Build` of composed operations: the common base of all builds, and the one that only infers types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from typing_extensions import override
from xdsl.dialects.builtin import ArrayAttr, IntegerType, TensorType, i1
from xdsl.ir import Attribute, SSAValue

from spyre_mlir.dialects.aten_arguments import NoneAttr, OperandsAttr, to_attribute
from spyre_mlir.dialects.aten_types import elements_of, result_shape, result_type
from spyre_mlir.dialects.aten_value import AtenValue, Raw, raw_of, typed, value_of
from spyre_mlir.dialects.tensors import ELEMENTS, TypedValue
from spyre_mlir.errors import RegistrationError, UnsupportedError
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.annotations import Ints
from spyre_mlir.ops.build import LoopBody
from spyre_mlir.ops.parameters import ArgKind
from spyre_mlir.ops.table import Family, OpEntry
from spyre_mlir.ops.value import Argument, Made, Operand, Value
from spyre_mlir.plugins import registry


class AtenBuild(ABC):
    """Binds the arguments of calls and infers the types of results; `make` is what subclasses define.

    Attributes:
        inside: whether composed ops that a plugin keeps whole are taken apart all the same: their types and numbers are
            those of their parts.
    """

    inside: ClassVar[bool] = False

    @abstractmethod
    def make(self, overload: str, entry: OpEntry, bound: Mapping[str, Any], result: TensorType[Attribute]) -> Raw:
        """Return the result of one op that is not rewritten."""

    def bounds(self, value: Value) -> tuple[int, int] | None:
        """Return the bounds of a number; nothing is known of tensors here, see `ops.build.Build`."""
        number = value.number
        return (number, number) if isinstance(number, int) else None

    def repeated(self, value: Value) -> Ints:
        """Return the dimensions of one entry; no more is known of tensors here, see `ops.build.Build`."""
        return tuple(d for d, extent in enumerate(value.shape) if extent == 1)

    def call(self, overload: str, *tensors: Operand, **attributes: Argument) -> Value:
        """Add an op of the table, or its decomposition; see `ops.value.Caller`."""
        made = self._called(overload, tensors, attributes)
        if isinstance(made, tuple):
            raise TypeError(f"{overload} has {len(made)} results: `call_all` gives them")
        return made

    def call_all(self, overload: str, *tensors: Operand, **attributes: Argument) -> tuple[Value, ...]:
        """Add an op and return all results; see `ops.build.Build`."""
        made = self._called(overload, tensors, attributes)
        return made if isinstance(made, tuple) else (made,)

    def _called(
        self, overload: str, tensors: tuple[Operand, ...], attributes: Mapping[str, Argument]
    ) -> Value | tuple[Value, ...]:
        entry = ATEN.find(overload)
        if entry is None:
            return self.called_by_schema(overload, [raw_of(t) for t in tensors], attributes)
        given = _in_order(overload, entry, tensors)
        if twice := [name for name in given if name in attributes]:
            raise TypeError(f"{overload} got {', '.join(twice)} by place and by name")
        given |= attributes
        bound: dict[str, Any] = {p.name: p.default for p in entry.params} | given
        if missing := [p.name for p in entry.params if p.required and p.name not in given]:
            raise TypeError(f"{overload} needs {', '.join(missing)}")
        if strange := [name for name in bound if entry.param(name) is None]:
            raise TypeError(f"{overload} has no argument {', '.join(strange)}")
        rewritten = self.rewrite(entry, bound)
        if rewritten is None and entry.composed:
            raise UnsupportedError(f"{overload} is kept whole, and the device runs it only in parts")
        if rewritten is not None:
            return rewritten
        raw = {name: raw_of(value) for name, value in bound.items()}
        _check_elements(overload, entry, raw)
        return AtenValue(self, self.make(overload, entry, raw, result_type(entry, raw)))

    def called_by_schema(
        self, overload: str, positional: Sequence[object], named: Mapping[str, object]
    ) -> Value | tuple[Value, ...]:
        """Add a call of an operator that the op table lacks, which the host runs; builds that only compute cannot.

        Raises:
            UnsupportedError: the build adds no ops, or torch has no such operator.
        """
        del positional, named
        raise UnsupportedError(f"{overload} is called by a decomposition, and the op table lacks it")

    def rewrite(self, entry: OpEntry, bound: Mapping[str, Any]) -> Made:
        """Return the replacement of an op with these arguments, one value or several; None if the op stays."""
        found = [r for overload in entry.overloads for r in registry.find(registry.HookKind.DECOMPOSITION, overload)]
        if not found and entry.decompose is None:
            return None
        arguments = self.arguments(entry, bound)
        for registered in found:
            made = registered(self, **arguments) if registered.wants(self, arguments) else None
            if made is not None:
                return _values(registered, made)
        kept = any(map(registry.is_kept_whole, entry.overloads)) and not self.inside
        if entry.decompose is None or kept:
            return None
        return entry.decompose(self, **arguments)

    def arguments(self, entry: OpEntry | None, bound: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments by name in the form of a building function."""
        tensors = () if entry is None else [p.name for p in entry.params if p.is_tensor]
        return {name: value_of(self, value, is_tensor=name in tensors) for name, value in bound.items()}

    def results(self, entry: OpEntry, bound: Mapping[str, Any]) -> list[Raw] | None:
        """Return the replacements of an op's results, see `rewrite`; None if the op stays."""
        made = self.rewrite(entry, bound)
        return None if made is None else [typed(v) for v in (made if isinstance(made, tuple) else (made,))]

    def cast(self, value: Value, element: str = "", *, like: Value | None = None) -> Value:
        """Return a value in another element type; see `ops.build.Build`."""
        wanted = like.element if like is not None and not element else element
        return value if value.element == wanted else self.call("_to_copy", value, dtype=wanted)

    def rounded(self, value: Value) -> Value:
        """Return a value as eager rounds it in the middle of an op; see `ops.build.Build`."""
        return value

    def loop(
        self,
        body: LoopBody,
        carried: Sequence[Value],
        sliced: Sequence[Value],
        others: Sequence[Value],
        *,
        backwards: bool = False,
    ) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        """Run the body once per entry; see `ops.build.Build`."""
        rows: list[Sequence[Value]] = []
        numbers = range(sliced[0].shape[0])
        for number in reversed(numbers) if backwards else numbers:
            entries = [self.call("slice.Tensor", x, dim=0, start=number, end=number + 1) for x in sliced]
            carried, row = body(self, carried, entries, others)
            rows.append(row)
        columns = zip(*(rows[::-1] if backwards else rows), strict=True)
        return tuple(carried), tuple(self.call("cat", list(column), dim=0) for column in columns)

    def full(self, shape: tuple[int, ...], number: float, element: str) -> Value:
        """Return one number everywhere; see `ops.build.Build`."""
        return self.call("full", size=tuple(shape), fill_value=number, dtype=element)

    def iota(self, count: int, element: str, *, start: float = 0, step: float = 1) -> Value:
        """Return start, start + step, …; see `ops.build.Build`."""
        whole = isinstance(start, int) and isinstance(step, int)
        # Half a step before the end: rounding of thirds would make one number more.
        end = start + step * (count if whole or not count else count - 0.5)
        return self.call("arange.start_step", start=start, end=end, step=step, dtype=element)


def _in_order(overload: str, entry: OpEntry, tensors: tuple[Operand, ...]) -> dict[str, Any]:
    """Arguments without a name, by name.

    Raises:
        TypeError: there are more than the operation has tensors; all others have to be named.
    """
    names = [p.name for p in entry.params if p.is_tensor]
    if len(tensors) > len(names):
        others = ", ".join(p.name for p in entry.params if not p.is_tensor) or "nothing"
        raise TypeError(
            f"{overload} got {len(tensors)} arguments without a name, and takes {len(names)} "
            f"({', '.join(names)}); by name it takes {others}"
        )
    return {name: list(t) if isinstance(t, Sequence) else t for name, t in zip(names, tensors, strict=False)}


def _check_elements(overload: str, entry: OpEntry, bound: Mapping[str, Any]) -> None:
    """Raises TypeError if a call leaves open what it computes in: two types of floats, or no tensor at all.

    torch would promote them, and the result would have another element type than the op it stands for.
    """
    if entry.family is Family.CREATION or entry.boolean or isinstance(bound.get("dtype"), str):
        return
    elements = {t for t in elements_of(entry, bound) if t != i1}
    floats = {str(t) for t in elements if not isinstance(t, IntegerType)}
    if len(floats) > 1:
        raise TypeError(f"{overload} gets {' and '.join(sorted(floats))}: cast one like the other")
    if not elements and any(isinstance(bound[p.name], float) for p in entry.params if p.is_tensor):
        raise TypeError(f"{overload} gets numbers only, which have no element type: make one with `full`")


def _values(registered: registry.Registered, made: object) -> Value | tuple[Value, ...]:
    """Return the results of a plugin's decomposition, if they are one value or several."""
    if isinstance(made, Value):
        return made
    several = cast("tuple[object, ...]", made) if isinstance(made, tuple) else ()
    values = tuple(v for v in several if isinstance(v, Value))
    if not isinstance(made, tuple) or len(values) != len(several):
        raise RegistrationError(
            f"{registered.owner} decomposes {registered.op} to {made!r}, not to a value of the build or a tuple"
        )
    return values


class TypeBuild(AtenBuild):
    """Infers types and computes nothing."""

    inside = True

    @override
    def make(self, overload: str, entry: OpEntry, bound: Mapping[str, Any], result: TensorType[Attribute]) -> Raw:
        """Return the type of one result."""
        return TypedValue(result)

    @override
    def loop(
        self,
        body: LoopBody,
        carried: Sequence[Value],
        sliced: Sequence[Value],
        others: Sequence[Value],
        *,
        backwards: bool = False,
    ) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        """Infer the types of one trip: what it carries has the types of what it began with."""
        count = sliced[0].shape[0]
        entries = [self.call("slice.Tensor", x, dim=0, start=0, end=1) for x in sliced]
        ends, row = body(self, carried, entries, others)
        return tuple(ends), tuple(x.expand(count, *x.shape[1:]) for x in row)

    def rewrite(self, entry: OpEntry, bound: Mapping[str, Any]) -> Made:
        """Expand only ops that have no type of their own."""
        return super().rewrite(entry, bound) if entry.composed else None


def result_types(entry: OpEntry, bound: Mapping[str, Any]) -> list[TensorType[Attribute]]:
    """Return the types of an entry's results for bound arguments.

    Raises:
        SpyreError: the arguments do not go together, or no composition exists for them.
    """
    if not entry.composed:
        return [result_type(entry, bound)]
    made = TypeBuild().results(entry, bound)
    return [cast("TypedValue", v).type for v in made or ()]


def result_shapes(entry: OpEntry, bound: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """Return the shapes of an entry's results for bound arguments; see `result_shape`."""
    return [t.get_shape() for t in result_types(entry, bound)] if entry.composed else [result_shape(entry, bound)]


def spelled(entry: OpEntry, bound: Mapping[str, Any]) -> tuple[list[SSAValue], dict[str, Attribute]]:
    """Return operands and attributes that express `bound`."""
    operands: list[SSAValue] = []
    attributes: dict[str, Attribute] = {}
    kept = 0  # attributes with an operand behind them: absent tensors among them say whose it is
    for param in entry.params:
        value = bound[param.name]
        if isinstance(value, SSAValue):
            operands.append(cast("SSAValue[Attribute]", value))
            kept = len(attributes)
        elif param.kind is ArgKind.TENSORS:
            operands += [v for v in value if v is not None]
            holes = any(v is None for v in value)
            items = [NoneAttr() if v is None else OperandsAttr(1) for v in value]
            attributes[param.name] = ArrayAttr(items) if holes else OperandsAttr(len(value))
        elif param.is_tensor and value is None:
            attributes[param.name] = NoneAttr()
        elif param.kind is ArgKind.DTYPE and isinstance(value, str):
            attributes[param.name] = ELEMENTS[value]
        elif param.is_tensor or param.required or value != param.default:
            attributes[param.name] = to_attribute(value)
    while len(attributes) > kept and isinstance(attributes[last := next(reversed(attributes))], NoneAttr):
        del attributes[last]
    return operands, attributes
