"""Access tiles of KTIR and the loads and stores through them."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override
from xdsl.dialects.builtin import AffineMapAttr, AffineSetAttr, IndexType, MemRefType, TensorType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineMap, AffineSet
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ktdp.affine import AffineError, bounds_of, permutation
from spyre_mlir.dialects.ktdp.attributes import AccessTileType
from spyre_mlir.dialects.ktdp.syntax import (
    TileType,
    parse_dictionary,
    parse_index_operands,
    parse_tile_type,
    print_dictionary,
    print_values,
)
from spyre_mlir.dialects.ktdp.views import view_type


def tile_type(value: SSAValue) -> AccessTileType:
    """The type of an access tile.

    Raises:
        VerifyException: it is none.
    """
    if not isinstance(value.type, AccessTileType):
        raise VerifyException(f"expected an access tile, got {value.type}")
    return value.type


def verify_points(points: AffineSet, order: AffineMap, tile: AccessTileType, name: str) -> None:
    """Check that a set of points, listed in an order, fills a tile.

    Args:
        points: offsets, or values of intermediate variables.
        order: which dimension of the points each axis of the tile walks.
        tile: the type.
        name: of the set, for messages.
    """
    places = permutation(order)
    if places is None or len(places) != points.num_dims:
        raise VerifyException(f"the order lists each of the {points.num_dims} dimensions of {name} once, got {order}")
    if points.num_symbols:
        raise VerifyException(f"{name} has no symbols, got {points.num_symbols}; the extents of a tile are known")
    try:
        box = bounds_of(points)
    except AffineError as error:
        raise VerifyException(f"{name}: {error}") from error
    if any(box.low):
        raise VerifyException(f"{name} starts at 0, got {list(box.low)}; add the start to the indices")
    walked = tuple(box.extents[place] for place in places)
    if walked != tile.shape:
        shapes = ["x".join(map(str, shape)) for shape in (walked, tile.shape)]
        raise VerifyException(f"{name} gives a tile of {shapes[0]}, the result is {shapes[1]}")


@irdl_op_definition
class ConstructAccessTileOp(IRDLOperation):
    """Coordinates of a view: a start plus a set of offsets.

    Axis k of the tile walks the offset dimension that result k of `access_tile_order` names, so an order that is not
    the identity transposes. `base_map` makes the start of the indices; without it they are the start.

    Constraints:
        C1: start and set have the rank of the view.
        C2: the order is a permutation of the dimensions of the set.
        C3: the set has no symbols, starts at 0, and fills the result in that order.
        C4: the base map takes the indices.
    """

    name = "ktdp.construct_access_tile"

    view = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    base_map = opt_prop_def(AffineMapAttr)
    access_tile_set = prop_def(AffineSetAttr)
    access_tile_order = prop_def(AffineMapAttr)
    result = result_def(AccessTileType)

    traits = traits_def(Pure())

    def __init__(
        self,
        view: SSAValue | Operation,
        indices: Sequence[SSAValue | Operation],
        access_tile_set: AffineSetAttr,
        access_tile_order: AffineMapAttr,
        shape: Sequence[int],
        base_map: AffineMapAttr | None = None,
    ) -> None:
        """Makes a tile of a shape."""
        super().__init__(
            operands=[view, list(indices)],
            properties={
                "access_tile_set": access_tile_set,
                "access_tile_order": access_tile_order,
                "base_map": base_map,
            },
            result_types=[AccessTileType(shape)],
        )

    # By hand: its dictionary holds properties, see `syntax`.
    @override
    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.view)
        print_values(printer, self.indices)
        own = {
            "access_tile_set": self.access_tile_set,
            "access_tile_order": self.access_tile_order,
            "base_map": self.base_map,
        }
        print_dictionary(printer, {**own, **self.attributes})
        printer.print_string(" : ")
        printer.print_attribute(self.view.type)
        printer.print_string(" -> ")
        printer.print_attribute(self.result.type)

    @classmethod
    @override
    def parse(cls, parser: Parser) -> ConstructAccessTileOp:
        view = parser.parse_unresolved_operand()
        indices = parse_index_operands(parser)
        properties, attributes = parse_dictionary(
            parser,
            {"access_tile_set": AffineSetAttr, "access_tile_order": AffineMapAttr, "base_map": AffineMapAttr},
            optional=["base_map"],
        )
        parser.parse_punctuation(":")
        base = parser.resolve_operand(view, parser.parse_type())
        parser.parse_punctuation("->")
        return cls.build(
            operands=[base, indices],
            properties=properties,
            attributes=attributes,
            result_types=[parse_tile_type(parser)],
        )

    @override
    def verify_(self) -> None:
        rank = view_type(self.view).get_num_dims()
        points = self.access_tile_set.data
        if self.base_map is not None:
            start = self.base_map.data
            if start.num_dims != len(self.indices) or start.num_symbols:
                raise VerifyException(f"base_map takes {len(self.indices)} indices, got {start}")
            count = len(start.results)
        else:
            count = len(self.indices)
        if count != rank or points.num_dims != rank:
            raise VerifyException(
                f"the view has rank {rank}, the start has {count} indices and access_tile_set {points.num_dims}"
            )
        verify_points(points, self.access_tile_order.data, tile_type(self.result), "access_tile_set")


def viewed_element(tile: SSAValue) -> Attribute | None:
    """Return the element type of the view behind a tile, None where it is unknown."""
    if not isinstance(tile, OpResult):
        return None
    maker = tile.owner
    view = maker.operands[0] if maker.name.startswith("ktdp.construct_") and maker.operands else None
    return view_type(view).element_type if view is not None and isinstance(view.type, MemRefType) else None


def _verify_transfer(tensor: SSAValue, tile: SSAValue) -> None:
    kind, shape = tensor.type, tile_type(tile).shape
    if not isinstance(kind, TensorType):
        raise VerifyException(f"expected a tensor, got {kind}")
    if tuple(kind.get_shape()) != shape:
        shapes = ["x".join(map(str, one)) for one in (kind.get_shape(), shape)]
        raise VerifyException(f"the tensor is {shapes[0]}, the access tile {shapes[1]}; they must be equal")
    element = viewed_element(tile)
    if element is not None and element != kind.get_element_type():
        raise VerifyException(f"the tensor has elements of {kind.get_element_type()}, the view of {element}")


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Copies a tile into the scratchpad of this core, as a tensor.

    Constraints:
        C1: the tensor has the shape of the tile.
        C2: the tensor has the element type of the view.
    """

    name = "ktdp.load"

    tile = operand_def(AccessTileType)
    result = result_def(TensorType)

    traits = traits_def(MemoryReadEffect())
    custom_directives = (TileType,)
    assembly_format = "$tile attr-dict `:` custom<TileType>(type($tile)) `->` type($result)"

    def __init__(self, tile: SSAValue | Operation, element: Attribute) -> None:
        """Loads a tile of elements of a type."""
        source = SSAValue.get(tile)
        super().__init__(operands=[source], result_types=[TensorType(element, tile_type(source).shape)])

    @override
    def verify_(self) -> None:
        _verify_transfer(self.result, self.tile)


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Writes a tensor where a tile says.

    Constraints:
        C1: the tensor has the shape of the tile.
        C2: the tensor has the element type of the view.
    """

    name = "ktdp.store"

    value = operand_def(TensorType)
    tile = operand_def(AccessTileType)

    traits = traits_def(MemoryWriteEffect())
    custom_directives = (TileType,)
    assembly_format = "$value `,` $tile attr-dict `:` type($value) `,` custom<TileType>(type($tile))"

    def __init__(self, value: SSAValue | Operation, tile: SSAValue | Operation) -> None:
        """Stores a tensor through a tile."""
        super().__init__(operands=[value, tile])

    @override
    def verify_(self) -> None:
        _verify_transfer(self.value, self.tile)
