"""Memory views of KTIR: typed views of bytes as tensors; nothing here moves data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import cast

from typing_extensions import override
from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineSetAttr, DenseArrayBase, IndexType, MemRefType, NoneAttr, i64
from xdsl.dialects.utils.dynamic_index_list import (
    get_dynamic_index_list,
    parse_dynamic_index_list_without_types,
    print_dynamic_index_list,
    split_dynamic_index_list,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineConstraintExpr, AffineConstraintKind, AffineExpr, AffineSet
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    base,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ktdp.affine import AffineError, bounds_of, normal_set
from spyre_mlir.dialects.ktdp.attributes import MemorySpace, MemorySpaceAttr, SpyreMemorySpaceAttr
from spyre_mlir.dialects.ktdp.syntax import parse_dictionary, print_dictionary, resolve_indices
from spyre_mlir.dialects.target import spec_at


def view_type(value: SSAValue) -> MemRefType[Attribute]:
    """The type of a view.

    Raises:
        VerifyException: it is no memref.
    """
    kind: Attribute = value.type
    if kind.name != MemRefType.name:
        raise VerifyException(f"a view is a memref, got {kind}")
    return cast("MemRefType[Attribute]", kind)


def require_space(view: MemRefType[Attribute], space: Attribute | None) -> None:
    """Refuse a memref whose own memory space differs from its view's."""
    if not isinstance(view.memory_space, NoneAttr) and view.memory_space != space:
        raise VerifyException(f"the type says {view.memory_space}, the view says {space}")


@irdl_op_definition
class ConstructMemoryViewOp(IRDLOperation):
    """Reads memory from `offset` on as a tensor; the start and the strides count elements.

    Symbols of `coordinate_set` stand for the sizes that are values, from left to right. In a part of a distributed
    view the set says which coordinates of the whole the part holds. A set that is left out holds all coordinates. A
    set with symbols masks: beyond the sizes a load gives no value and a store leaves out.

    Constraints:
        C1: sizes, strides, the coordinate set and the result have one rank.
        C2: the result's extents are the sizes; a size that is a value is `?`, or the number it will be.
        C3: a set without symbols holds exactly as many coordinates along each dimension as the size says.
        C4: `ct_id` is a core of the card.
        C5: the set has no more symbols than sizes that are values.
    """

    name = "ktdp.construct_memory_view"

    offset = operand_def(IndexType)
    sizes = var_operand_def(IndexType)
    strides = var_operand_def(IndexType)
    static_sizes = prop_def(DenseArrayBase.constr(i64))
    static_strides = prop_def(DenseArrayBase.constr(i64))
    coordinate_set = prop_def(AffineSetAttr)
    memory_space = prop_def(base(MemorySpaceAttr) | base(SpyreMemorySpaceAttr))
    result = result_def(MemRefType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        offset: SSAValue | Operation,
        sizes: Sequence[int | SSAValue],
        strides: Sequence[int | SSAValue],
        coordinate_set: AffineSetAttr,
        memory_space: MemorySpace,
        element: Attribute,
    ) -> None:
        """Makes a view; the result's extents are the sizes that are numbers, and `?` for the others."""
        known_sizes, given_sizes = split_dynamic_index_list(sizes, DYNAMIC_INDEX)
        known_strides, given_strides = split_dynamic_index_list(strides, DYNAMIC_INDEX)
        super().__init__(
            operands=[offset, given_sizes, given_strides],
            properties={
                "static_sizes": DenseArrayBase.from_list(i64, known_sizes),
                "static_strides": DenseArrayBase.from_list(i64, known_strides),
                "coordinate_set": coordinate_set,
                "memory_space": memory_space,
            },
            result_types=[MemRefType(element, known_sizes)],
        )

    @property
    def mixed_sizes(self) -> list[int | SSAValue]:
        """Sizes, numbers and values."""
        return list(get_dynamic_index_list(self.static_sizes.get_values(), self.sizes, DYNAMIC_INDEX))

    @property
    def mixed_strides(self) -> list[int | SSAValue]:
        """Strides in elements, numbers and values."""
        return list(get_dynamic_index_list(self.static_strides.get_values(), self.strides, DYNAMIC_INDEX))

    # By hand: its dictionary holds properties, see `syntax`.
    @override
    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.offset)
        printer.print_string(", sizes: ")
        print_dynamic_index_list(printer, DYNAMIC_INDEX, self.sizes, self.static_sizes.get_values())
        printer.print_string(", strides: ")
        print_dynamic_index_list(printer, DYNAMIC_INDEX, self.strides, self.static_strides.get_values())
        own = {"coordinate_set": self.coordinate_set, "memory_space": self.memory_space}
        print_dictionary(printer, {**own, **self.attributes})
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    @override
    def parse(cls, parser: Parser) -> ConstructMemoryViewOp:
        offset = parser.parse_unresolved_operand()
        lists: list[tuple[list[SSAValue], Sequence[int]]] = []
        for word in ("sizes", "strides"):
            parser.parse_punctuation(",")
            parser.parse_keyword(word)
            parser.parse_punctuation(":")
            values, numbers = parse_dynamic_index_list_without_types(parser, DYNAMIC_INDEX)
            lists.append((resolve_indices(parser, values), numbers))
        properties, attributes = parse_dictionary(
            parser, {"coordinate_set": AffineSetAttr, "memory_space": MemorySpace}, optional=("coordinate_set",)
        )
        parser.parse_punctuation(":")
        result = parser.parse_type()
        (sizes, known_sizes), (strides, known_strides) = lists
        properties.setdefault("coordinate_set", _whole_set(known_sizes))
        return cls.build(
            operands=[parser.resolve_operand(offset, IndexType()), sizes, strides],
            properties={
                "static_sizes": DenseArrayBase.from_list(i64, known_sizes),
                "static_strides": DenseArrayBase.from_list(i64, known_strides),
                **properties,
            },
            attributes=attributes,
            result_types=[result],
        )

    @override
    def verify_(self) -> None:
        view, domain = view_type(self.result), self.coordinate_set.data
        _require_values("sizes", self.static_sizes.get_values(), self.sizes)
        _require_values("strides", self.static_strides.get_values(), self.strides)
        sizes, strides = self.mixed_sizes, self.mixed_strides
        ranks = [len(sizes), len(strides), domain.num_dims, view.get_num_dims()]
        if len(set(ranks)) != 1:
            raise VerifyException(
                "sizes, strides, coordinate set and result have one rank, got {}, {}, {} and {}".format(*ranks)
            )
        for number, (size, extent) in enumerate(zip(sizes, view.get_shape(), strict=True)):
            if (isinstance(size, int) and size != extent) or size == 0:
                raise VerifyException(f"size {number} is {size}, the result's extent is {extent}")
        if domain.num_symbols > len(self.sizes):
            raise VerifyException(
                f"the coordinate set has {domain.num_symbols} symbols for {len(self.sizes)} sizes that are values"
            )
        self._verify_set()
        core, cores = self.memory_space.core, spec_at(self).cores_per_card
        if core is not None and core >= cores:
            raise VerifyException(f"{self.memory_space.OWNER} = {core}, the card has {cores} cores")
        require_space(view, self.memory_space)

    def _verify_set(self) -> None:
        domain = self.coordinate_set.data
        if domain.num_symbols:
            return
        try:
            extents = bounds_of(domain).extents
        except AffineError as error:
            raise VerifyException(f"coordinate_set: {error}") from error
        for number, (size, extent) in enumerate(zip(self.mixed_sizes, extents, strict=True)):
            if isinstance(size, int) and size != extent:
                raise VerifyException(f"coordinate_set has {extent} coordinates along d{number}, the size is {size}")


def _require_values(name: str, numbers: Sequence[int], values: Sequence[SSAValue]) -> None:
    """Raises VerifyException unless there is a value for each number that stands for one."""
    places = numbers.count(DYNAMIC_INDEX)
    if places != len(values):
        raise VerifyException(
            f"{name} have {places} numbers {DYNAMIC_INDEX}, which stand for values, and {len(values)} values"
        )


def _whole_set(sizes: Sequence[int]) -> AffineSetAttr:
    """All coordinates of a view; sizes that are values are symbols, from left to right."""
    rules, symbols = list[AffineConstraintExpr](), 0
    for place, size in enumerate(sizes):
        dim, end = AffineExpr.dimension(place), AffineExpr.constant(size)
        if size == DYNAMIC_INDEX:
            end, symbols = AffineExpr.symbol(symbols), symbols + 1
        rules += [_at_least_zero(dim), _at_least_zero(dim * -1 + end - 1)]
    return normal_set(AffineSetAttr(AffineSet(len(sizes), symbols, tuple(rules))))


def _at_least_zero(expr: AffineExpr) -> AffineConstraintExpr:
    return AffineConstraintExpr(AffineConstraintKind.ge, expr, AffineExpr.constant(0))


@irdl_op_definition
class ConstructDistributedMemoryViewOp(IRDLOperation):
    """One tensor whose parts are several views, in device memory or in the scratchpads of cores.

    Constraints:
        C1: there is at least one part; parts and result have one rank and one element type.
        C2: coordinate sets without symbols are disjoint, as boxes.
    """

    name = "ktdp.construct_distributed_memory_view"

    memrefs = var_operand_def(MemRefType)
    result = result_def(MemRefType)

    traits = traits_def(Pure())
    assembly_format = "` ` `(` $memrefs `:` type($memrefs) `)` attr-dict `:` type($result)"

    def __init__(self, memrefs: Sequence[SSAValue | Operation], result: Attribute) -> None:
        """Makes one view of parts."""
        super().__init__(operands=[list(memrefs)], result_types=[result])

    @override
    def verify_(self) -> None:
        whole = view_type(self.result)
        if not self.memrefs:
            raise VerifyException("a distributed view has at least one part")
        for number, part in enumerate(self.memrefs):
            kind = view_type(part)
            if kind.element_type != whole.element_type:
                raise VerifyException(
                    f"part {number} has elements of {kind.element_type}, the result of {whole.element_type}"
                )
            if kind.get_num_dims() != whole.get_num_dims():
                raise VerifyException(
                    f"part {number} has rank {kind.get_num_dims()}, the result rank {whole.get_num_dims()}"
                )
        self._verify_disjoint()

    def _verify_disjoint(self) -> None:
        makers = [(number, value.owner) for number, value in enumerate(self.memrefs)]
        boxes = [
            (number, bounds_of(maker.coordinate_set.data))
            for number, maker in makers
            if isinstance(maker, ConstructMemoryViewOp) and not maker.coordinate_set.data.num_symbols
        ]
        for (one, box), (two, other) in combinations(boxes, 2):
            if box.meets(other) and not box.rules and not other.rules:
                raise VerifyException(f"parts {one} and {two} hold the same coordinates; parts must be disjoint")
