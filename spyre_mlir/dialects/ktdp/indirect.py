"""Tiles whose coordinates come from memory: gathers when loaded, scatters when stored."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    ArrayAttr,
    BoolAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ktdp.affine import expr_text, simplified
from spyre_mlir.dialects.ktdp.attributes import AccessTileType
from spyre_mlir.dialects.ktdp.subscripts import Names, Subscript, parse_subscript
from spyre_mlir.dialects.ktdp.syntax import parse_dictionary, parse_tile_type, print_dictionary, print_types
from spyre_mlir.dialects.ktdp.tiles import tile_type, verify_points
from spyre_mlir.dialects.ktdp.views import view_type

# How our text calls intermediate variables: they are no SSA values, and no value of a program is called so.
VARIABLE = "_iv"


@irdl_op_definition
class ConstructIndirectAccessTileOp(IRDLOperation):
    """Coordinates of a view that are computed for each point of a space of intermediate variables.

    A dimension of the view is subscripted by an expression, or by what an index view holds where expressions say.
    In a subscript map, dimensions are the intermediate variables and symbols are `captured_variables`.

    Constraints:
        C1: one subscript per dimension of the view; one index view per indirect subscript, in their order.
        C2: a direct subscript has one expression, an indirect one as many as its index view has dimensions.
        C3: index views hold integers.
        C4: the space has no symbols, starts at 0, and fills the result in the order given.
    """

    name = "ktdp.construct_indirect_access_tile"

    view = operand_def(MemRefType)
    indirect_memrefs = var_operand_def(MemRefType)
    captured_variables = var_operand_def(IndexType)
    per_dim_subscript_kinds = prop_def(ArrayAttr[BoolAttr])
    per_dim_subscript_maps = prop_def(ArrayAttr[AffineMapAttr])
    variables_space_set = prop_def(AffineSetAttr)
    variables_space_order = prop_def(AffineMapAttr)
    result = result_def(AccessTileType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        view: SSAValue | Operation,
        subscripts: Sequence[AffineMap | tuple[SSAValue, AffineMap]],
        captured_variables: Sequence[SSAValue],
        variables_space_set: AffineSetAttr,
        variables_space_order: AffineMapAttr,
        shape: Sequence[int],
    ) -> None:
        """Makes a tile; a subscript is a map, or an index view and the map of where to look in it."""
        memrefs = [one[0] for one in subscripts if isinstance(one, tuple)]
        maps = [one[1] if isinstance(one, tuple) else one for one in subscripts]
        super().__init__(
            operands=[view, memrefs, list(captured_variables)],
            properties={
                "per_dim_subscript_kinds": _flags([isinstance(one, tuple) for one in subscripts]),
                "per_dim_subscript_maps": ArrayAttr([AffineMapAttr(one) for one in maps]),
                "variables_space_set": variables_space_set,
                "variables_space_order": variables_space_order,
            },
            result_types=[AccessTileType(shape)],
        )

    @property
    def subscripts(self) -> list[tuple[SSAValue | None, AffineMap]]:
        """Per dimension of the view: its index view if it has one, and the map."""
        views = iter(self.indirect_memrefs)
        return [
            (next(views) if kind.value.data else None, one.data)
            for kind, one in zip(self.per_dim_subscript_kinds, self.per_dim_subscript_maps, strict=True)
        ]

    # By hand: its dictionary holds properties, see `syntax`; variables that are no values are read as operands are.
    @override
    def print(self, printer: Printer) -> None:
        rank = self.variables_space_set.data.num_dims
        printer.print_string(" intermediate_variables(")
        printer.print_string(", ".join(f"%{VARIABLE}{number}" for number in range(rank)))
        printer.print_string(") ")
        printer.print_ssa_value(self.view)
        printer.print_string("[")
        printer.print_list(self.subscripts, lambda one: self._print_subscript(printer, *one))
        printer.print_string("]")
        own = {"variables_space_set": self.variables_space_set, "variables_space_order": self.variables_space_order}
        print_dictionary(printer, {**own, **self.attributes})
        printer.print_string(" : ")
        print_types(printer, [self.view.type, *(memref.type for memref in self.indirect_memrefs)])
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    def _print_subscript(self, printer: Printer, view: SSAValue | None, subscript: AffineMap) -> None:
        if view is None:
            printer.print_string("(")
        else:
            printer.print_string("ind(")
            printer.print_ssa_value(view)
            printer.print_string("[")
        printer.print_list(subscript.results, lambda expr: self._print_expr(printer, expr))
        printer.print_string(")" if view is None else "])")

    def _print_expr(self, printer: Printer, expr: AffineExpr) -> None:
        """Print an expression; the printer, who knows the names of values, is asked wherever one stands."""
        marker = "\0"

        def name(atom: AffineExpr) -> str:
            kind, place = (
                ("v", atom.position) if isinstance(atom, AffineDimExpr) else ("s", getattr(atom, "position", 0))
            )
            return f"{marker}{kind}{place}{marker}"

        for number, piece in enumerate(expr_text(expr, name).split(marker)):
            if number % 2 == 0:
                printer.print_string(piece)
            elif piece[0] == "v":
                printer.print_string(f"%{VARIABLE}{piece[1:]}")
            else:
                printer.print_ssa_value(self.captured_variables[int(piece[1:])])

    @classmethod
    @override
    def parse(cls, parser: Parser) -> ConstructIndirectAccessTileOp:
        parser.parse_keyword("intermediate_variables")
        variables = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_unresolved_operand)
        names = Names([variable.operand_name for variable in variables])
        view = parser.parse_unresolved_operand()
        found = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_subscript(parser, names))
        properties, attributes = parse_dictionary(
            parser, {"variables_space_set": AffineSetAttr, "variables_space_order": AffineMapAttr}
        )
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        indirect = [one.view for one in found if one.view is not None]
        base, *memrefs = parser.resolve_operands([view, *indirect], types, parser.pos)
        parser.parse_punctuation("->")
        return cls.build(
            operands=[base, memrefs, names.captured],
            properties={**_described(found, names), **properties},
            attributes=attributes,
            result_types=[parse_tile_type(parser)],
        )

    @override
    def verify_(self) -> None:
        rank = view_type(self.view).get_num_dims()
        kinds, maps = self.per_dim_subscript_kinds.data, self.per_dim_subscript_maps.data
        if len(kinds) != rank or len(maps) != rank:
            raise VerifyException(f"the view has rank {rank} and {len(maps)} subscripts")
        wanted = sum(bool(kind.value.data) for kind in kinds)
        if wanted != len(self.indirect_memrefs):
            raise VerifyException(f"{wanted} indirect subscripts and {len(self.indirect_memrefs)} index views")
        points = self.variables_space_set.data
        for number, (view, subscript) in enumerate(self.subscripts):
            if (subscript.num_dims, subscript.num_symbols) != (points.num_dims, len(self.captured_variables)):
                raise VerifyException(f"subscript {number} is no map of the variables and the captured values")
            self._verify_subscript(number, view, len(subscript.results))
        verify_points(points, self.variables_space_order.data, tile_type(self.result), "variables_space_set")

    def _verify_subscript(self, number: int, view: SSAValue | None, count: int) -> None:
        if view is None:
            if count != 1:
                raise VerifyException(f"subscript {number} has {count} expressions, a direct one has 1")
            return
        kind = view_type(view)
        if count != kind.get_num_dims():
            raise VerifyException(
                f"subscript {number} has {count} expressions for a view of rank {kind.get_num_dims()}"
            )
        if not isinstance(kind.element_type, IntegerType | IndexType):
            raise VerifyException(f"index views hold integers, got {kind.element_type} in subscript {number}")


def _flags(values: Sequence[bool]) -> ArrayAttr[Attribute]:
    return ArrayAttr([IntegerAttr.from_bool(value) for value in values])


def _described(found: Sequence[Subscript], names: Names) -> dict[str, Attribute]:
    maps = [one.map(names) for one in found]
    flat = [AffineMap(m.num_dims, m.num_symbols, tuple(map(simplified, m.results))) for m in maps]
    return {
        "per_dim_subscript_kinds": _flags([one.view is not None for one in found]),
        "per_dim_subscript_maps": ArrayAttr([AffineMapAttr(one) for one in flat]),
    }
