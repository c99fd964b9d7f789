"""`spyre.loop.*`: operations over named iteration spaces, on tensors, without layouts.

``spyre.loop.nest [m = 4, n = 6, k = 8] ins(%a[m, k] : …, %b[k, n] : …) -> [m, n] : … reduce "arith.addf"``:
every point of the space evaluates the body on one element of each input; points that meet in one element of
the result are combined. Views of the aten level live in the index maps and cost nothing.

Decision: docs/decisions/0010-one-function-per-body.md
Decision: docs/decisions/0114-nest-instead-of-linalg-generic.md
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import I64, ArrayAttr, IntegerAttr, StringAttr, TensorType, UnitAttr, i1, i64
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import HasParent, IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.aten_arguments import verify_marks
from spyre_mlir.dialects.directives import Quoted, ValueDirective
from spyre_mlir.dialects.ir.canonicalization import CanonicalPatterns
from spyre_mlir.dialects.ir.operand_groups import known_groups
from spyre_mlir.dialects.spyre.attributes import IndexMapAttr, SpaceAttr
from spyre_mlir.dialects.spyre.scalars import entry_of, spelling
from spyre_mlir.dialects.spyre.syntax import AllReadAt, ReadAt, SameType, Space, WrittenAt
from spyre_mlir.dialects.tensors import element_of, integer_bits, is_unsigned, shape_of
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import Family, OpEntry

# How a reduction of integers, and of truth values, spells what combines two elements.
_COMBINED_INTEGERS = {
    "arith.addf": ("arith.addi", "arith.addi"),
    "arith.maximumf": ("arith.maxsi", "arith.maxui"),
    "arith.minimumf": ("arith.minsi", "arith.minui"),
}
_ON_FLOATS = {name: e for e, names in _COMBINED_INTEGERS.items() for name in names}


def _combining() -> list[str]:
    return list(dict.fromkeys(e.combine for e in ATEN if e.combine is not None and e.family is Family.REDUCTION))


def combiner(scalar: str) -> OpEntry:
    """Return the reduction of a scalar combiner, which the verifier has checked."""
    found = ATEN.combiner(_ON_FLOATS.get(scalar, scalar))
    if found is None:
        raise VerifyException(f"no reduction folds with '{scalar}'")
    return found


def combining(entry: OpEntry, element: Attribute) -> str | None:
    """Return a nest's name for the reduction `entry` of elements of a type."""
    if entry.combine not in _COMBINED_INTEGERS or not integer_bits(element):
        return entry.combine
    truths = element == i1 or is_unsigned(element)
    return _COMBINED_INTEGERS[entry.combine][truths]


def check_map(index: IndexMapAttr, shape: Sequence[int], space: SpaceAttr, tensor: str) -> None:
    """Raise VerifyException unless `index` stays inside `shape` over the whole `space`."""
    extents = space.extents
    if len(index.data) != len(shape):
        raise VerifyException(f"{tensor} has rank {len(shape)}, its map {len(index.data)} expressions")
    for dim, (expr, extent) in enumerate(zip(index.data, shape, strict=True)):
        for name, _ in expr.terms:
            if name not in extents:
                raise VerifyException(
                    f"the map of {tensor} uses '{name}', the space has {', '.join(extents) or 'no dimensions'}"
                )
        if expr.first(extents) < 0 or expr.last(extents) >= extent:
            raise VerifyException(
                f"{tensor}: index {expr} runs over {expr.first(extents)} to {expr.last(extents)}, "
                f"dimension {dim} has {extent}"
            )


# Note on a nest that converts a part of a weight: the part is a digit of so many bits of 32-bit words. It says how the
# weight is sent; a program without it means the same.
DIGITS = "digits"

# Note on a product: the columns that it has on the device, those without readers among them.
PADDED = "padded"


@lru_cache(maxsize=1 << 12)
def _reduced(space: SpaceAttr, written: IndexMapAttr) -> tuple[str, ...]:
    return tuple([d.name for d in space.data if d.name not in written.names])


@known_groups("inputs", "dest")
@irdl_op_definition
class NestOp(IRDLOperation):
    """A loop nest: body per point, optional combination, result or update of `dest`.

    Constraints:
        C1: every map stays inside its tensor over the whole space.
        C2: the body is one scalar function of its arguments, or a copy.
        C3: without `combine`, every point writes an element of its own.
        C4: with a destination, the result has its type; elements not written keep its values.

    `wide` says that exact numerics do not round a float32 result: it is the inside of a composition.
    """

    name = "spyre.loop.nest"

    space = prop_def(SpaceAttr)
    maps = prop_def(ArrayAttr[IndexMapAttr])
    combine = opt_prop_def(StringAttr)
    wide = opt_prop_def(UnitAttr)
    inputs = var_operand_def()
    dest = opt_operand_def()
    result = result_def(TensorType)
    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(
        RecursiveMemoryEffect(), Pure(), CanonicalPatterns("spyre_mlir.dialects.spyre.canonicalization.loop")
    )
    custom_directives = (Space, AllReadAt, ValueDirective, WrittenAt, SameType, Quoted)
    assembly_format = (
        "custom<Space>($space) (`ins` `(` custom<AllReadAt>($inputs, type($inputs), $maps)^ `)`)? "
        "(`into` custom<ValueDirective>($dest)^)? `->` custom<WrittenAt>(ref($maps)) `:` type($result) "
        "custom<SameType>(ref($dest), type($dest), ref(type($result))) "
        "(`reduce` custom<Quoted>($combine)^)? (`wide` $wide^)? attr-dict-with-keyword $body"
    )

    def __init__(
        self,
        space: SpaceAttr,
        inputs: Sequence[SSAValue],
        maps: Sequence[IndexMapAttr],
        result: Attribute,
        body: Region,
        *,
        combine: str | None = None,
        dest: SSAValue | None = None,
    ) -> None:
        """Makes a nest; `maps` lists the inputs' maps, then the result's."""
        properties: dict[str, Attribute] = {"space": space, "maps": ArrayAttr(maps)}
        if combine is not None:
            properties["combine"] = StringAttr(combine)
        super().__init__(
            operands=[list(inputs), [] if dest is None else [dest]],
            properties=properties,
            result_types=[result],
            regions=[body],
        )

    @property
    def input_maps(self) -> tuple[IndexMapAttr, ...]:
        """Maps of the inputs."""
        return self.maps.data[:-1]

    @property
    def output_map(self) -> IndexMapAttr:
        """Map of the result."""
        return self.maps.data[-1]

    @property
    def reduced(self) -> tuple[str, ...]:
        """Iteration dimensions the result lacks."""
        return _reduced(self.space, self.output_map)

    def verify_(self) -> None:
        """Checks C1 to C4, and that its mark is a property."""
        verify_marks(self)
        if len(self.maps.data) != len(self.inputs) + 1:
            raise VerifyException(f"{len(self.maps.data)} maps for {len(self.inputs)} inputs and one result")
        for number, (value, index) in enumerate(zip(self.inputs, self.input_maps, strict=True)):
            check_map(index, shape_of(value), self.space, f"input {number}")
        check_map(self.output_map, shape_of(self.result), self.space, "the result")
        body_function(self.body.block)
        if self.reduced and self.combine is None:
            raise VerifyException(f"{', '.join(self.reduced)} must be combined: the result's map lacks them")
        if self.combine is not None and self.combine.data not in (known := [*_combining(), *_ON_FLOATS]):
            raise VerifyException(f"cannot combine with '{self.combine.data}', expected one of {', '.join(known)}")
        if self.dest is not None and self.dest.type != self.result.type:
            raise VerifyException(f"the destination is {self.dest.type}, the result {self.result.type}")


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends the body of a nest with the value of one point."""

    name = "spyre.loop.yield"

    value = var_operand_def()

    traits = lazy_traits_def(lambda: (IsTerminator(), HasParent(NestOp), Pure()))

    assembly_format = "$value `:` type($value) attr-dict"


def body_function(body: Block) -> OpEntry | None:
    """Return the single entry that a nest's body computes on its arguments in order; None for a body that only copies.

    Raises:
        VerifyException: the body is more than one function of its arguments.
    """
    *ops, last = body.ops
    if not isinstance(last, YieldOp) or len(last.operands) != 1:
        raise VerifyException("the body of a nest ends in spyre.loop.yield of one value")
    (value,) = last.operands
    if not ops:
        if len(body.args) != 1 or value is not body.args[0]:
            raise VerifyException("a body without operations yields its only argument")
        return None
    if len(ops) != 1 or tuple(ops[0].operands) != tuple(body.args) or value is not ops[0].results[0]:
        raise VerifyException("the body of a nest is one scalar operation on all its arguments, in order")
    entry = entry_of(ops[0])
    if entry is None:
        raise VerifyException(f"no hardware function computes {spelling(ops[0])}")
    return entry


@irdl_op_definition
class LoopGatherOp(IRDLOperation):
    """Reads a table at rows that a tensor of indices names.

    ``spyre.loop.gather [s = 64, h = 256] rows(%ids[s] : …) of axis 0 in %table[0, h] : … -> [s, h] : …``.

    With `from_end`, negative indices count from the end of the table.

    Constraints:
        C1: every map stays inside its tensor; the table's expression at `axis` is 0.
    """

    name = "spyre.loop.gather"

    space = prop_def(SpaceAttr)
    maps = prop_def(ArrayAttr[IndexMapAttr])
    axis = prop_def(IntegerAttr[I64])
    from_end = opt_prop_def(UnitAttr)
    indices = operand_def(TensorType)
    table = operand_def(TensorType)
    result = result_def(TensorType)

    traits = traits_def(Pure())
    custom_directives = (Space, ReadAt, WrittenAt)
    assembly_format = (
        "custom<Space>($space) `rows` `(` custom<ReadAt>($indices, type($indices), $maps) `)` "
        "`of` `axis` $axis `in` custom<ReadAt>($table, type($table), ref($maps)) "
        "`->` custom<WrittenAt>(ref($maps)) `:` type($result) (`from_end` $from_end^)? "
        "attr-dict-with-keyword"
    )

    def __init__(
        self,
        space: SpaceAttr,
        indices: SSAValue,
        table: SSAValue,
        axis: int,
        maps: Sequence[IndexMapAttr],
        result: Attribute,
    ) -> None:
        """Makes a gather; `maps` are those of indices, table and result."""
        super().__init__(
            operands=[indices, table],
            result_types=[result],
            properties={"space": space, "maps": ArrayAttr(maps), "axis": IntegerAttr(axis, i64)},
        )

    def verify_(self) -> None:
        """Checks C1."""
        if len(self.maps.data) != 3:
            raise VerifyException(f"a gather has 3 maps, got {len(self.maps.data)}")
        for index, value, name in zip(
            self.maps, (self.indices, self.table, self.result), ("indices", "table", "result"), strict=True
        ):
            check_map(index, shape_of(value), self.space, f"the {name}")
        axis = self.axis.value.data
        if not 0 <= axis < len(shape_of(self.table)) or self.maps.data[1].data[axis].terms:
            raise VerifyException(f"axis {axis} must be a dimension of the table whose expression is 0")


@irdl_op_definition
class EmptyOp(IRDLOperation):
    """A tensor whose elements are not defined yet; nests fill it part by part."""

    name = "spyre.loop.empty"

    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, result: Attribute) -> None:
        """Makes an empty tensor of a type."""
        super().__init__(result_types=[result])


@irdl_op_definition
class LoopConstantOp(IRDLOperation):
    """A tensor of known numbers: one number everywhere, or `#spyre.iota`."""

    name = "spyre.loop.constant"

    value = prop_def()
    result = result_def(TensorType)

    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($result)"

    def __init__(self, value: Attribute, result: Attribute) -> None:
        """Makes a constant from its value attribute."""
        super().__init__(properties={"value": value}, result_types=[result])


__all__ = [
    "DIGITS",
    "PADDED",
    "EmptyOp",
    "LoopConstantOp",
    "LoopGatherOp",
    "NestOp",
    "YieldOp",
    "body_function",
    "check_map",
    "combiner",
    "combining",
    "element_of",
    "shape_of",
]
