"""Types and attributes of KTIR: access tiles, futures, and memory spaces.

Parsed and printed by hand: `assembly_format` of an attribute knows keywords only, and xDSL's own syntax of parameters
is another text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from typing_extensions import override
from xdsl.dialects.builtin import DYNAMIC_INDEX, AffineSetAttr, ArrayAttr, IndexType, IntAttr, NoneAttr, StringAttr
from xdsl.dialects.builtin import TensorType as XdslTensorType
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ktdp.affine import normal_set, set_text

GLOBAL = "global"
LOCAL = "ct_local"


@irdl_attr_definition
class AccessTileType(ParametrizedAttribute, TypeAttribute):
    """A set of coordinates of a view, in the shape its elements are loaded or stored; no data.

    Constraints:
        C1: the element type is `index`.
        C2: every extent is known and at least 1.
    """

    name = "ktdp.access_tile"

    extents: ArrayAttr[IntAttr]
    element: Attribute

    def __init__(self, shape: Sequence[int], element: Attribute | None = None) -> None:
        super().__init__(ArrayAttr([IntAttr(extent) for extent in shape]), element or IndexType())

    @property
    def shape(self) -> tuple[int, ...]:
        """Extent of each axis."""
        return tuple(extent.data for extent in self.extents)

    @classmethod
    @override
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape, element = parser.parse_ranked_shape()
        return [ArrayAttr([IntAttr(extent) for extent in shape]), element]

    @override
    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string("".join(f"{extent}x" for extent in self.shape))
            printer.print_attribute(self.element)

    @override
    def verify(self) -> None:
        if not isinstance(self.element, IndexType):
            raise VerifyException(f"tile element type must be index, got {self.element}")
        for extent in self.shape:
            if extent == DYNAMIC_INDEX or extent < 1:
                shown = "?" if extent == DYNAMIC_INDEX else extent
                raise VerifyException(f"an access tile has known extents of at least 1, got {shown}")


@irdl_attr_definition
class TileFutureType(ParametrizedAttribute, TypeAttribute):
    """A partial result on each producer of each group, not yet combined.

    Constraints:
        C1: what is carried is a tensor.
        C2: the groups are a set of one dimension without symbols.
    """

    name = "ktdp.tile_future"

    partial: Attribute
    groups: AffineSetAttr

    def __init__(self, partial: Attribute, groups: AffineSetAttr) -> None:
        super().__init__(partial, groups)

    @classmethod
    @override
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return cls.parse_inside(parser)

    @classmethod
    def parse_inside(cls, parser: AttrParser) -> Sequence[Attribute]:
        """The parameters without their brackets."""
        # The newest front end writes the types in parentheses; one type means the same without.
        wrapped = parser.parse_optional_punctuation("(") is not None
        partial = parser.parse_type()
        if wrapped:
            parser.parse_punctuation(")")
        parser.parse_punctuation(",")
        parser.parse_keyword("groups")
        parser.parse_punctuation("=")
        groups = parser.parse_attribute()
        if not isinstance(groups, AffineSetAttr):
            parser.raise_error("expected an affine_set for groups")
        return [partial, normal_set(groups)]

    @override
    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.partial)
            printer.print_string(f", groups = {set_text(self.groups.data)}")

    @override
    def verify(self) -> None:
        if not isinstance(self.partial, XdslTensorType):
            raise VerifyException(f"a future carries a tensor, got {self.partial}")
        groups = self.groups.data
        if groups.num_dims != 1 or groups.num_symbols:
            raise VerifyException(f"groups is a set of one dimension without symbols, got {set_text(groups)}")


class MemorySpace(ParametrizedAttribute):
    """Common base of the two spellings of a memory space."""

    kind: StringAttr
    owner: IntAttr | NoneAttr

    WORDS: ClassVar[dict[str, str]]
    OWNER: ClassVar[str]

    @property
    def is_local(self) -> bool:
        """Return whether the view is in a scratchpad."""
        return self.kind.data == self.WORDS[LOCAL]

    @property
    def core(self) -> int | None:
        """The core whose scratchpad it is; None: device memory, or the scratchpad of the running core."""
        return self.owner.data if isinstance(self.owner, IntAttr) else None

    @classmethod
    @override
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        core: Attribute = NoneAttr()
        with parser.in_angle_brackets():
            kind = parser.parse_identifier()
            if parser.parse_optional_punctuation(","):
                parser.parse_keyword(cls.OWNER)
                parser.parse_punctuation("=")
                core = IntAttr(parser.parse_integer(allow_boolean=False))
        return [StringAttr(kind), core]

    @override
    def print_parameters(self, printer: Printer) -> None:
        owner = "" if self.core is None else f", {self.OWNER} = {self.core}"
        with printer.in_angle_brackets():
            printer.print_string(f"{self.kind.data}{owner}")

    @override
    def verify(self) -> None:
        if self.kind.data not in self.WORDS.values():
            raise VerifyException(f"unknown memory space {self.kind.data}; try {' or '.join(self.WORDS.values())}")
        if self.core is not None and not self.is_local:
            raise VerifyException(f"{self.OWNER} is only valid for {self.WORDS[LOCAL]}, got {self.kind.data}")
        if self.core is not None and self.core < 0:
            raise VerifyException(f"{self.OWNER} is the number of a core, got {self.core}")


@irdl_attr_definition
class MemorySpaceAttr(MemorySpace):
    """Memory space of a view: device memory, or the scratchpad of a core (this one, or core `ct_id`).

    Constraints:
        C1: the space is `global` or `ct_local`.
        C2: `ct_id` comes with `ct_local` only, and is not negative.
    """

    name = "ktdp.memory_space"

    # Fields of a parent class would not take part in comparisons.
    kind: StringAttr
    owner: IntAttr | NoneAttr

    WORDS: ClassVar[dict[str, str]] = {GLOBAL: GLOBAL, LOCAL: LOCAL}
    OWNER: ClassVar[str] = "ct_id"


@irdl_attr_definition
class SpyreMemorySpaceAttr(MemorySpace):
    """The older spelling of a memory space: `HBM`, `LX`, and `core = N`.

    Constraints:
        C1: the space is `HBM` or `LX`.
        C2: `core` comes with `LX` only, and is not negative.
    """

    name = "ktdp.spyre_memory_space"

    # Fields of a parent class would not take part in comparisons.
    kind: StringAttr
    owner: IntAttr | NoneAttr

    WORDS: ClassVar[dict[str, str]] = {GLOBAL: "HBM", LOCAL: "LX"}
    OWNER: ClassVar[str] = "core"


def memory_space(kind: str, core: int | None = None, *, older: bool = False) -> MemorySpace:
    """Return a memory space in one of the two spellings.

    Args:
        kind: `global` or `ct_local`.
        core: whose scratchpad.
        older: whether to spell it as before August 2026.
    """
    made = SpyreMemorySpaceAttr if older else MemorySpaceAttr
    return made.new([StringAttr(made.WORDS[kind]), NoneAttr() if core is None else IntAttr(core)])


@irdl_attr_definition
class Df16Type(ParametrizedAttribute, TypeAttribute):
    """DLFloat16: one sign bit, six bits of exponent, nine of fraction."""

    name = "spyreop.df16"
