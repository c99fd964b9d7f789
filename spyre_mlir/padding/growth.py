"""Which dimensions of a program's values are as long as a symbol: those that grow with it.

A function at the loop level is compared with the same function for a smaller size. The two must be equal but for the
extents that grow, and each of these must be the size itself.

Decision: docs/decisions/0125-padding-is-proved-away.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import cast

from xdsl.dialects import func
from xdsl.ir import Attribute, Operation, SSAValue

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
    """Which dimensions and loops grow with the size.

    Attributes:
        dims: of every value that has some.
        loops: names by nest.
    """

    dims: Mapping[SSAValue, frozenset[int]]
    loops: Mapping[Operation, frozenset[str]]

    def of(self, value: SSAValue) -> frozenset[int]:
        """Return the dimensions of a value that grow."""
        return self.dims.get(value, frozenset())


def refusal(what: str, op: Operation | None = None) -> UnsupportedError:
    """Return the error for a program that cannot run on padded inputs."""
    source = Source() if op is None else source_of(op.location)
    said = f"{source.operator}: {what}" if source.operator else what
    return UnsupportedError(f"inputs cannot be padded: {said}", where=str(source) or None, hint=HINT)


def growth(pair: Pair) -> Growth:
    """Return what grows with the size.

    Raises:
        UnsupportedError: the functions differ in more than extents, or an extent is something else than the size.
    """
    compared = _Compared(pair)
    larger, smaller = pair.function.body.block, pair.smaller.body.block
    compared.values(larger.args, smaller.args)
    for op, other in zip_longest(larger.ops, smaller.ops):
        if op is None or other is None or not compared.alike(op, other):
            raise refusal("the program has other steps, or other numbers, for another length", op)
        compared.values(op.results, other.results, op)
        compared.spaces(op, other)
    return Growth(compared.dims, compared.loops)


@dataclass(frozen=True)
class _Compared:
    """What is known of values and nests so far.

    Attributes:
        twins: values of the larger function to those of the smaller one.
    """

    pair: Pair
    twins: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    dims: dict[SSAValue, frozenset[int]] = field(default_factory=dict[SSAValue, frozenset[int]])
    loops: dict[Operation, frozenset[str]] = field(default_factory=dict[Operation, frozenset[str]])

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
            extents = zip(shape_of(value), shape_of(other), strict=True)
            if grown := frozenset(d for d, (extent, less) in enumerate(extents) if self._grows(extent, less, op)):
                self.dims[value] = grown

    def spaces(self, op: Operation, other: Operation) -> None:
        """Note the loops of a nest that grow."""
        if isinstance(space := op.properties.get(_SPACE), SpaceAttr):
            less = cast(SpaceAttr, other.properties[_SPACE]).extents
            self.loops[op] = frozenset(n for n, extent in space.extents.items() if self._grows(extent, less[n], op))

    def _grows(self, extent: int, less: int, op: Operation | None) -> bool:
        if extent == less:
            return False
        if (extent, less) != (self.pair.size, self.pair.smaller_size):
            sizes = f"{self.pair.size} and {self.pair.smaller_size}"
            why = f"an extent is {extent} and {less} for the lengths {sizes}"
            each, rest = divmod(extent, self.pair.size)
            if not rest and less == each * self.pair.smaller_size:
                why += f": it counts {each} for each, as a convolution counts the pixels of all images together"
            raise refusal(why, op)
        return True


def _facts(op: Operation) -> dict[str, object]:
    """What an op says besides extents."""
    facts: dict[str, object] = dict(op.properties)
    if isinstance(space := facts.get(_SPACE), SpaceAttr):
        facts[_SPACE] = tuple(space.extents)
    return facts


def _bodies(op: Operation) -> list[tuple[str, dict[str, Attribute]]]:
    return [(inner.name, inner.properties) for region in op.regions for inner in region.walk()]
