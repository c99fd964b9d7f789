"""Which dimensions of a program's values are as long as a symbol: those that grow with it.

A function at the loop level is compared with the same function for a smaller size. The two must be equal but for the
extents that grow, and each of these must be the size itself, or a multiple of it, as the pixels of all images are.

Decision: docs/decisions/0125-padding-is-proved-away.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import cast

from xdsl.dialects import func
from xdsl.ir import Attribute, Operation, SSAValue

from spyre_mlir.dialects.ir.control import ControlOp
from spyre_mlir.dialects.places import Source, source_of
from spyre_mlir.dialects.spyre.attributes import SpaceAttr
from spyre_mlir.dialects.tensors import shape_of
from spyre_mlir.errors import UnsupportedError

HINT = "leave out buckets: each length then has a program of its own"
_SPACE = "space"


@dataclass(frozen=True)
class Pair:
    """One function for two sizes.

    Attributes:
        function: for the larger size.
        size: the larger size.
        smaller: the same function for the smaller size.
        smaller_size: the smaller size.
    """

    function: func.FuncOp
    size: int
    smaller: func.FuncOp
    smaller_size: int


@dataclass(frozen=True)
class Growth:
    """Which dimensions and loops grow with the size, and how many elements of them there are for each.

    Attributes:
        dims: of every value that has some.
        loops: names by nest.
    """

    dims: Mapping[SSAValue, Mapping[int, int]]
    loops: Mapping[Operation, Mapping[str, int]]

    def of(self, value: SSAValue) -> Mapping[int, int]:
        """Return the dimensions of a value that grow."""
        return self.dims.get(value, {})


def refusal(reason: str, op: Operation | None = None) -> UnsupportedError:
    """Return the error for a program that cannot run on padded inputs."""
    source = Source() if op is None else source_of(op.location)
    said = f"{source.operator}: {reason}" if source.operator else reason
    return UnsupportedError(f"inputs cannot be padded: {said}", where=str(source) or None, hint=HINT)


def growth(pair: Pair) -> Growth:
    """Return the growth of dimensions and loops with the size.

    Raises:
        UnsupportedError: the functions differ in more than extents, or an extent is something else than the size.
    """
    compared = _Compared(pair)
    compared.functions(pair.function, pair.smaller)
    return Growth(compared.dims, compared.loops)


@dataclass(frozen=True)
class _Compared:
    """What is known of values and nests so far.

    Attributes:
        twins: values of the larger function to those of the smaller one.
    """

    pair: Pair
    twins: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    dims: dict[SSAValue, dict[int, int]] = field(default_factory=dict[SSAValue, dict[int, int]])
    loops: dict[Operation, dict[str, int]] = field(default_factory=dict[Operation, dict[str, int]])

    def functions(self, larger: func.FuncOp, smaller: func.FuncOp) -> None:
        """Compare two functions, with those that their control flow calls.

        Raises:
            UnsupportedError: they differ in more than extents, or an extent is something else than the size.
        """
        self.values(larger.body.block.args, smaller.body.block.args)
        for op, other in zip_longest(larger.body.block.ops, smaller.body.block.ops):
            if op is None or other is None or not self.alike(op, other):
                raise refusal("the program has other steps, or other numbers, for another length", op)
            if isinstance(op, ControlOp) and isinstance(other, ControlOp):
                for pair in zip(op.functions(), other.functions(), strict=True):
                    self.functions(*pair)
            self.values(op.results, other.results, op)
            self.spaces(op, other)

    def alike(self, op: Operation, other: Operation) -> bool:
        """Return whether two ops are one but for extents."""
        return (
            op.name == other.name
            and len(op.results) == len(other.results)
            and tuple(self.twins[value] for value in op.operands) == tuple(other.operands)
            and _facts(op) == _facts(other)
            and _bodies(op) == _bodies(other)
        )

    def values(self, larger: Sequence[SSAValue], smaller: Sequence[SSAValue], op: Operation | None = None) -> None:
        """Note the dimensions of values that grow."""
        for value, other in zip(larger, smaller, strict=True):
            self.twins[value] = other
            extents = enumerate(zip(shape_of(value), shape_of(other), strict=True))
            if grown := {d: self._each(*pair, op) for d, pair in extents if pair[0] != pair[1]}:
                self.dims[value] = grown

    def spaces(self, op: Operation, other: Operation) -> None:
        """Note the loops of a nest that grow."""
        if isinstance(space := op.properties.get(_SPACE), SpaceAttr):
            less = cast(SpaceAttr, other.properties[_SPACE]).extents
            pairs = ((name, extent, less[name]) for name, extent in space.extents.items())
            self.loops[op] = {name: self._each(a, b, op) for name, a, b in pairs if a != b}

    def _each(self, extent: int, less: int, op: Operation | None) -> int:
        """How many elements an extent that grows has for each."""
        each, rest = divmod(extent, self.pair.size)
        if rest or less != each * self.pair.smaller_size:
            sizes = f"{self.pair.size} and {self.pair.smaller_size}"
            raise refusal(f"an extent is {extent} and {less} for the lengths {sizes}", op)
        return each


def _facts(op: Operation) -> dict[str, object]:
    """What an op says besides extents."""
    facts: dict[str, object] = dict(op.properties)
    if isinstance(space := facts.get(_SPACE), SpaceAttr):
        facts[_SPACE] = tuple(space.extents)
    return facts


def _bodies(op: Operation) -> list[tuple[str, dict[str, Attribute]]]:
    return [(inner.name, inner.properties) for region in op.regions for inner in region.walk()]
