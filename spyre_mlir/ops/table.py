"""The op table: one decorated function declares an operation.

The function's signature, with the arguments that the declaration ignores, is the schema (positional = tensors,
keyword-only = attributes with their defaults), its docstring the reference text, its body the exact meaning on wide
numpy arrays. The body never rounds; the machine rounds where the hardware does.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from spyre_mlir.errors import ConstraintError
from spyre_mlir.ops.parameters import Ignored, Param, adapted, parameters_of, with_ignored
from spyre_mlir.ops.value import Made


class Family(Enum):
    """How an operation lowers; passes dispatch on this, never on names."""

    POINTWISE = "pointwise"
    REDUCTION = "reduction"
    CONTRACTION = "contraction"
    VIEW = "view"
    MOVEMENT = "movement"
    CREATION = "creation"
    COLLECTIVE = "collective"
    COMPOSITE = "composite"


class Support(Enum):
    """Support of an operation; calls whose arguments it does not allow run on the host."""

    NATIVE = "native"
    COMPOSED = "composed"
    HOST = "host"


class Unit(Enum):
    """The execution unit of a core, spelled as the JSON's ``exUnit``."""

    SFP = "sfp"
    PT = "pt"


@dataclass(frozen=True)
class Sample:
    """One set of arguments that exercises an operation; tensors are given by shape.

    Args:
        shapes: one shape per tensor argument, in order; a list of shapes for a tensor list.
        attributes: the other arguments.
        low, high: the range random inputs are drawn from.
        breaks: the constraint this sample must violate, or None for a good sample.
        whole: whether the inputs are whole numbers, as torch.int64 holds them.
    """

    shapes: tuple[Any, ...]
    attributes: Mapping[str, object] = field(default_factory=dict[str, object])
    low: float = -2.0
    high: float = 2.0
    breaks: str | None = None
    whole: bool = False


@dataclass(frozen=True)
class OpEntry:
    """Everything the compiler knows about an operation.

    Attributes:
        overloads: the ATen overloads it stands for, ``.default`` dropped, e.g. ``add.Tensor``.
        meaning: exact numpy meaning; called with arrays and keyword attributes.
        opfunc: the hardware function, or None for views and composites.
        unit: where the hardware function runs.
        fp32: whether the hardware function also takes IEEE_FP32 operands.
        scalar: the loop-body operation, e.g. ``arith.addf``; None means ``spyre.loop.apply``.
        combine: the combining scalar operation of a reduction or contraction.
        spec: einsum-like specification of a contraction, e.g. ``"bmk,bkn->bmn"``.
        shape: shape of the result from operand shapes and attributes; None for broadcasting.
        boolean: whether the result holds truth values.
        decompose: rewrites the op into others; called by the `decompose-aten` pass.
        composed: whether `decompose` is all there is: meaning, shape and number of results follow from it.
        promote: whether all operands are brought to one element type at import, as torch does before it computes.
        ulps: allowed error of a result in units in the last place of its format.
        tolerance: relative error of a composition in exact arithmetic; more than 0 where it approximates.
        source: where the hardware claim comes from.
        op_info: arguments that are no tensors, to the constants of the hardware function they set.
        owner: module and name of the function that declared the entry, if it is a plugin's.
        ignores: arguments among `params` that `meaning`, `shape` and `decompose` drop: no declared function takes them.
    """

    name: str
    overloads: tuple[str, ...]
    params: tuple[Param, ...]
    family: Family
    meaning: Callable[..., Any]
    doc: str
    opfunc: str | None = None
    unit: Unit = Unit.SFP
    fp32: bool = False
    scalar: str | None = None
    combine: str | None = None
    spec: str | None = None
    shape: Callable[..., tuple[int, ...]] | None = None
    decompose: Callable[..., Made] | None = None
    boolean: bool = False
    ulps: float = 1.0
    tolerance: float = 0.0
    source: str = ""
    op_info: Mapping[str, str] = field(default_factory=dict[str, str])
    owner: str = ""
    composed: bool = False
    promote: bool = True
    ignores: tuple[Ignored, ...] = ()
    samples: list[Sample] = field(default_factory=list[Sample], compare=False)

    def param(self, name: str) -> Param | None:
        """The parameter called `name`, or None."""
        return next((p for p in self.params if p.name == name), None)

    def numbers(self, constants: Mapping[str, float]) -> dict[str, float]:
        """The arguments that constants of the hardware function set."""
        return {name: constants[constant] for name, constant in self.op_info.items() if constant in constants}


def _of_its_parts(*_: object, **__: object) -> Any:
    raise TypeError("a composed operation means what its parts mean: evaluate it with an evaluating `Build`")


class Table:
    """A set of declarations; ours is `ATEN`, a plugin brings its own."""

    def __init__(self, dialect: str) -> None:
        """Starts an empty table for the ops of `dialect`."""
        self.dialect = dialect
        self._entries: dict[str, OpEntry] = {}
        self._owners: dict[str, OpEntry] = {}
        self._by_opfunc: dict[str, OpEntry] = {}

    def declare(
        self, family: Family, *, aten: Sequence[str], ignores: Sequence[Ignored] = (), **facts: Any
    ) -> Callable[..., OpEntry]:
        """Decorator that adds the function below it to the table.

        An argument may be ignored if every value gives the same elements (it chooses among algorithms, or concerns
        gradients), or if something else acts on it (the result's type, its strides). Any other argument is taken, and a
        value that is not implemented is refused.

        Args:
            family: how the operation lowers.
            aten: the overloads.
            ignores: arguments of the schema that the function does not take, nor a `decompose` or a `shape`.
            facts: other attributes of the entry.

        Raises:
            ValueError: an overload is claimed twice; names both owners.
            TypeError: a parameter does not say what it holds, or is ignored and taken.
        """

        def add(function: Callable[..., Any]) -> OpEntry:
            params = parameters_of(function)
            return self._declared(function, params, aten, ignores, meaning=function, family=family, **facts)

        return add

    def _declared(
        self,
        function: Callable[..., Any],
        params: tuple[Param, ...],
        aten: Sequence[str],
        ignores: Sequence[Ignored],
        **facts: Any,
    ) -> OpEntry:
        params = with_ignored(function.__name__, params, ignores)
        for name in ("meaning", "decompose", "shape"):
            if (given := facts.get(name)) is not None:
                facts[name] = adapted(given, ignores, builds=name == "decompose")
        doc = inspect.cleandoc(function.__doc__ or "")
        entry = OpEntry(
            name=function.__name__, overloads=tuple(aten), params=params, doc=doc, ignores=tuple(ignores), **facts
        )
        self._add(entry)
        return entry

    def pointwise(self, *, aten: list[str], **facts: Any) -> Callable[..., OpEntry]:
        """Declares an element-by-element operation; shapes broadcast."""
        return self.declare(Family.POINTWISE, aten=aten, **facts)

    def reduction(self, *, aten: list[str], **facts: Any) -> Callable[..., OpEntry]:
        """Declares a reduction over named dimensions."""
        return self.declare(Family.REDUCTION, aten=aten, **facts)

    def contraction(self, *, aten: list[str], **facts: Any) -> Callable[..., OpEntry]:
        """Declares a product summed over one index."""
        return self.declare(Family.CONTRACTION, aten=aten, **facts)

    def view(self, *, aten: list[str], **facts: Any) -> Callable[..., OpEntry]:
        """Declares another reading of the same elements; the body uses the methods of `View`."""
        return self.declare(Family.VIEW, aten=aten, **facts)

    def movement(self, *, aten: list[str], **facts: Any) -> Callable[..., OpEntry]:
        """Declares an operation that moves elements without arithmetic."""
        return self.declare(Family.MOVEMENT, aten=aten, **facts)

    def creation(self, *, aten: list[str], **facts: Any) -> Callable[..., OpEntry]:
        """Declares a tensor made from numbers alone: the host provides it with the program."""
        return self.declare(Family.CREATION, aten=aten, **facts)

    def collective(self, *, aten: list[str], **facts: Any) -> Callable[..., OpEntry]:
        """Declares what the ranks of a group call together; the body gets and gives one tensor per rank."""
        return self.declare(Family.COLLECTIVE, aten=aten, promote=False, **facts)

    def composed(
        self,
        *,
        aten: Sequence[str],
        ignores: Sequence[Ignored] = (),
        promote: bool = False,
        meaning: Callable[..., Any] | None = None,
        **facts: Any,
    ) -> Callable[..., OpEntry]:
        """Declares a composition: its body builds the operation from other entries of the table.

        The body's first parameter is the `Build` if it calls one; operators and methods of values need none. It returns
        one value, or a tuple if the operation has several results. Shapes, element types and the meaning at the aten
        level come from running it, unless `meaning` says the meaning and `shape` the shape.

        Args:
            aten: the overloads.
            ignores: arguments of the schema that neither body nor meaning takes; see `declare`.
            promote: bring all operands to the element type of the result first, as element-by-element ops want.
            meaning: the exact meaning in numpy, where the body only comes near to it.
            facts: other attributes of the entry.
        """
        facts = {"ulps": 16.0, "promote": promote, "composed": meaning is None, "family": Family.COMPOSITE} | facts

        def add(function: Callable[..., Made]) -> OpEntry:
            params = parameters_of(function, builds=True)
            rewrite = {"decompose": function} | facts
            return self._declared(function, params, aten, ignores, meaning=meaning or _of_its_parts, **rewrite)

        return add

    def samples(self, entry: OpEntry, *samples: Sample) -> None:
        """Attaches sample arguments to `entry`; tests and reference pages use them."""
        entry.samples.extend(samples)

    def _add(self, entry: OpEntry) -> None:
        for overload in entry.overloads:
            if (owner := self._owners.get(overload)) is not None:
                raise ValueError(f"{self.dialect}.{overload} is claimed by both {owner.name} and {entry.name}")
        if entry.name in self._entries:
            raise ValueError(f"two entries of table {self.dialect} are called {entry.name}")
        self._owners |= dict.fromkeys(entry.overloads, entry)
        self._entries[entry.name] = entry
        if entry.opfunc is not None:
            known = self._by_opfunc.get(entry.opfunc)
            if known is None or _tensors(entry) < _tensors(known):
                self._by_opfunc[entry.opfunc] = entry

    @contextmanager
    def isolated(self) -> Generator[None]:
        """Undoes the declarations made inside the block."""
        tables = (self._entries, self._owners, self._by_opfunc)
        before = [dict(table) for table in tables]
        try:
            yield
        finally:
            for table, kept in zip(tables, before, strict=True):
                table.clear()
                table.update(kept)

    def __iter__(self) -> Iterator[OpEntry]:
        """The entries in order of declaration."""
        return iter(self._entries.values())

    def find(self, overload: str) -> OpEntry | None:
        """The entry that claims an ATen overload such as ``add.Tensor``, or None."""
        return self._owners.get(overload)

    def support(self, overload: str) -> Support:
        """Return the support of an ATen overload: native, composed or host."""
        entry = self.find(overload)
        if entry is None or entry.family is Family.COLLECTIVE:
            return Support.HOST
        return Support.COMPOSED if entry.family is Family.COMPOSITE else Support.NATIVE

    def named(self, name: str) -> OpEntry | None:
        """The entry called `name`, or None."""
        return self._entries.get(name)

    def combiner(self, scalar: str) -> OpEntry | None:
        """The reduction that folds with a scalar operation such as ``arith.addf``, or None."""
        return next((e for e in self if e.combine == scalar and e.family is Family.REDUCTION), None)

    def by_opfunc(self, opfunc: str) -> OpEntry | None:
        """The entry whose hardware function is `opfunc`, or None; of several the one that takes the fewest tensors.

        A copy is `clone`, not the `embedding` that copies rows; a product is `matmul`, not `linear` with its bias.
        """
        return self._by_opfunc.get(opfunc)


def _tensors(entry: OpEntry) -> int:
    return sum(p.is_tensor for p in entry.params)


def require(constraint: str, holds: bool, message: str) -> None:
    """Raises a ConstraintError that names the numbered constraint of the declaration."""
    if not holds:
        raise ConstraintError(f"{constraint}: {message}")
