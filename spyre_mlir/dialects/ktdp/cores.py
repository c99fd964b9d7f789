"""Exchange of values between cores."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override
from xdsl.dialects.builtin import AffineSetAttr, IndexType, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.traits import HasParent, IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.hints import isa

from spyre_mlir.dialects.ktdp.affine import set_text
from spyre_mlir.dialects.ktdp.attributes import TileFutureType
from spyre_mlir.dialects.ktdp.grid import enclosing_grid
from spyre_mlir.dialects.ktdp.syntax import FutureType, Members, Produced


def _single_block(arguments: Sequence[Attribute]) -> Region:
    return Region(Block(arg_types=arguments))


def _require_members(name: str, members: AffineSetAttr) -> None:
    if (members.data.num_dims, members.data.num_symbols) != (1, 1):
        raise VerifyException(f"{name} is a set of cores of a group, (i)[g] : (...), got {set_text(members.data)}")


def _future(value: SSAValue) -> TileFutureType:
    if not isinstance(value.type, TileFutureType):
        raise VerifyException(f"expected a future, got {value.type}")
    return value.type


def _without_units(type_: Attribute) -> Attribute:
    """A tensor type without its dimensions of extent 1."""
    if not isa(type_, TensorType[Attribute]):
        return type_
    return TensorType(type_.element_type, [n for n in type_.get_shape() if n != 1], type_.encoding)


def _require_region(region: Region, arguments: Sequence[Attribute], end: str, yielded: Attribute) -> None:
    block = region.blocks.first
    if block is None or block.next_block is not None:
        raise VerifyException("the region has one block")
    if [one.type for one in block.args] != list(arguments):
        raise VerifyException(
            f"the block takes ({', '.join(map(str, arguments))}), got ({', '.join(str(a.type) for a in block.args)})"
        )
    last = block.last_op
    if last is None or last.name != end:
        raise VerifyException(f"the block ends with {end}")
    if [one.type for one in last.operands] != [yielded]:
        raise VerifyException(f"{end} gives {yielded}, got {', '.join(str(o.type) for o in last.operands)}")


class _Yield(IRDLOperation):
    """Common base of the two terminators."""

    value = operand_def(TensorType)

    assembly_format = "$value attr-dict `:` type($value)"

    def __init__(self, value: SSAValue | Operation) -> None:
        super().__init__(operands=[value])


@irdl_op_definition
class YieldPartialOp(_Yield):
    """The contribution of a producer."""

    name = "ktdp.yield_partial"

    traits = lazy_traits_def(lambda: (IsTerminator(), Pure(), HasParent(InterTileProduceOp)))


@irdl_op_definition
class YieldReducedOp(_Yield):
    """Two partial results combined into one."""

    name = "ktdp.yield_reduced"

    traits = lazy_traits_def(lambda: (IsTerminator(), Pure(), HasParent(InterTileReduceOp)))


@irdl_op_definition
class InterTileProduceOp(IRDLOperation):
    """Each producer core of each group contributes a tensor; the block's argument is the number of the group.

    Constraints:
        C1: the producers are a set of cores of a group, `(i)[g]`.
        C2: the region is one block that takes an `index` and yields what the future carries.
        C3: exactly one op takes the future.
    """

    name = "ktdp.inter_tile_produce"

    producer_tiles_per_group = prop_def(AffineSetAttr)
    future = result_def(TileFutureType)
    body = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())
    custom_directives = (Members, Produced)
    assembly_format = (
        "`producer_tiles_per_group` `=` custom<Members>($producer_tiles_per_group) attr-dict "
        "custom<Produced>(type($future)) $body"
    )

    def __init__(
        self, producers: AffineSetAttr, partial: Attribute, groups: AffineSetAttr, body: Region | None = None
    ) -> None:
        """Makes a future of a tensor type; without a region the block is still to be filled."""
        super().__init__(
            properties={"producer_tiles_per_group": producers},
            result_types=[TileFutureType(partial, groups)],
            regions=[body if body is not None else _single_block([IndexType()])],
        )

    @override
    def verify_(self) -> None:
        enclosing_grid(self)
        _require_members("producer_tiles_per_group", self.producer_tiles_per_group)
        _require_region(self.body, [IndexType()], YieldPartialOp.name, _future(self.future).partial)
        count = self.future.uses.get_length()
        if count != 1:
            raise VerifyException(f"a future is taken by exactly one op, this one by {count}")


@irdl_op_definition
class InterTileReduceOp(IRDLOperation):
    """Each consumer core gets what all producers of its group contributed, combined two by two by the region.

    It is the only point where cores wait for each other. The order in which partial results are combined is not
    defined.

    Constraints:
        C1: the consumers are a set of cores of a group, `(i)[g]`.
        C2: future and identity have one tensor type, and the result too, but for dimensions of extent 1 left out.
        C3: the region is one block that takes two such tensors and yields one.
    """

    name = "ktdp.inter_tile_reduce"

    future = operand_def(TileFutureType)
    identity = operand_def(TensorType)
    consumer_tiles_per_group = prop_def(AffineSetAttr)
    result = result_def(TensorType)
    combiner = region_def("single_block")

    traits = traits_def(RecursiveMemoryEffect())
    custom_directives = (Members, FutureType)
    assembly_format = (
        "`(` $future `)` `consumer_tiles_per_group` `=` custom<Members>($consumer_tiles_per_group) "
        "`,` `identity` `(` $identity `:` type($identity) `)` attr-dict "
        "`:` custom<FutureType>(type($future)) `->` type($result) $combiner"
    )

    def __init__(
        self,
        future: SSAValue | Operation,
        identity: SSAValue | Operation,
        consumers: AffineSetAttr,
        combiner: Region | None = None,
    ) -> None:
        """Makes the combined tensor; without a region the block is still to be filled."""
        kind = SSAValue.get(identity).type
        super().__init__(
            operands=[future, identity],
            properties={"consumer_tiles_per_group": consumers},
            result_types=[kind],
            regions=[combiner if combiner is not None else _single_block([kind, kind])],
        )

    @override
    def verify_(self) -> None:
        enclosing_grid(self)
        _require_members("consumer_tiles_per_group", self.consumer_tiles_per_group)
        kind = _future(self.future).partial
        if self.identity.type != kind:
            raise VerifyException(f"the future carries {kind}, the identity is {self.identity.type}")
        if _without_units(self.result.type) != _without_units(kind):
            raise VerifyException(f"the future carries {kind}, the result is {self.result.type}")
        _require_region(self.combiner, [kind, kind], YieldReducedOp.name, kind)
