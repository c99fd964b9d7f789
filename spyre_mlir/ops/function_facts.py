"""Record of a hardware function: everything that other packages know of one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from spyre_mlir.hw.certainty import Tag
from spyre_mlir.ops.function_forms import Form
from spyre_mlir.ops.table import Unit


class Special(Enum):
    """Functions whose cores or files follow rules of their own."""

    SHUFFLE = "shuffle"
    LARGEST = "top k, values"
    PLACES_OF_LARGEST = "top k, places"
    POOLING = "pooling"
    CONVOLUTION = "convolution"
    DEPTHWISE = "depthwise convolution"
    MOMENTS = "moments of a row"
    INVERSE_DEVIATION = "inverse standard deviation from moments"
    TOKEN_SCALE = "scale of a quantised row"


class LaneOrder(Enum):
    """Effect of a copy on the order of elements along the stick."""

    KEPT = "kept"
    WIDENED = "widened"
    NARROWED = "narrowed"


class Group(Enum):
    """Functions that share layout rules; the headings of the reference page."""

    MATRIX = "matrix"
    ELEMENTWISE = "element by element"
    REDUCTION = "reduction"
    WINDOW = "window"
    SELECTION = "selection"
    CONVERSION = "conversion"
    MOVEMENT = "movement"


class Seen(Enum):
    """Public occurrences of a function."""

    FILE = "real files"
    BOTH = "published list and front end"
    FRONT_END = "front end only"
    RESEARCH = "files of one research build only"
    LIST = "published list only"
    UNSETTLED = "published list; meaning not settled"


_TAGS = {
    Seen.FILE: Tag.CERTAIN,
    Seen.BOTH: Tag.CERTAIN,
    Seen.FRONT_END: Tag.LIKELY,
    Seen.RESEARCH: Tag.LIKELY,
    Seen.LIST: Tag.LIKELY,
    Seen.UNSETTLED: Tag.INFERRED,
}


@dataclass(frozen=True)
class HardwareFunction:
    """One name a file may use.

    Args:
        name: `opFuncName`, without "nonstick".
        group: the family.
        inputs: operands read, the accumulator of a reduction not counted.
        meaning: what it computes, in a line.
        seen: where it occurs in public.
        formats: formats it takes, as the lists abbreviate them.
        constants: names of its constants, in file order.
        nonstick: whether the name takes the suffix "nonstick" when the reduced dim is not in the stick.
        unit: where it runs.
        accumulates: whether files list the output among the inputs; all reductions do.
        exact: whether every sound arithmetic gives the same result: it chooses, compares, negates, or rounds once.
        picks: whether every result is one of the operands, or its negative.
        selects: whether the first operand picks between the other two, so that only what is picked counts as read.
        form: what it computes, as an expression; None where the op table or a rule of the machine says it.
        composed: whether the expression takes several steps, which are rounded once, at the end.
        combine: how partial results of a reduction combine, by MLIR's name.
        neutral: what takes no part in that.
        absolute: whether magnitudes are combined.
        factor: the constant that the combined value is multiplied by.
        mask_words: DL16 codes that stand in for padding in files (torch-spyre mask constants; likely). The largest
            number does what the largest half does, and leaves alone what lies further out.
        contracts: whether the machine runs it as a sum of products.
        packed: whether the first operand of the products is in the lanes in which a conversion to 8 bits leaves it.
        lane_order: of a copy: the order in which elements arrive.
        restickifies: whether it puts another dim in the stick.
        converts_integers: whether it converts between float32 and 32-bit integers; a file gives its format as FP32.
        special: which rules of its own it follows, if any.
        eight_bits: whether a copy makes eight-bit floats, in wide numerics too.
        pole: whether it has no number where its last operand is 0.
        positive: whether every result is above 0.
        lifts: whether a result of a positive operand and one that is not negative is positive.
    """

    name: str
    group: Group
    inputs: int
    meaning: str
    seen: Seen
    formats: str = "DL16, FP32"
    constants: tuple[str, ...] = ()
    nonstick: bool = False
    unit: Unit = Unit.SFP
    accumulates: bool = False
    exact: bool = False
    picks: bool = False
    selects: bool = False
    form: Form | None = None
    composed: bool = False
    combine: str | None = None
    neutral: float = 0.0
    absolute: bool = False
    factor: str | None = None
    mask_words: tuple[int, ...] = (0,)
    contracts: bool = False
    packed: bool = False
    lane_order: LaneOrder | None = None
    eight_bits: bool = False
    restickifies: bool = False
    converts_integers: bool = False
    special: Special | None = None
    pole: bool = False
    positive: bool = False
    lifts: bool = False

    @property
    def masks_padding(self) -> bool:
        """Newer front ends mask its padding lanes, although it reduces nothing."""
        return self.group is Group.ELEMENTWISE and self.mask_words != (0,)

    @property
    def tag(self) -> Tag:
        """How sure the name and its meaning are."""
        return _TAGS[self.seen]
