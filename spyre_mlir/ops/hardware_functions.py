"""The hardware functions a file may name: what is public about each, stated once.

A file's `opFuncName` is one of these, or a reduction's name with "nonstick" behind it. Certainty follows one rule: a
function that both the published list and the front end have is certain; one that a single source has is likely; one
whose meaning no source settles is inferred.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from spyre_mlir.hw.certainty import Tag
from spyre_mlir.ops.table import Unit


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
    """Where a function occurs in public."""

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

    @property
    def tag(self) -> Tag:
        """How sure the name and its meaning are."""
        return _TAGS[self.seen]


def _matrix(name: str, meaning: str, seen: Seen, formats: str) -> HardwareFunction:
    return HardwareFunction(name, Group.MATRIX, 2, meaning, seen, formats, unit=Unit.PT)


def _pointwise(
    name: str,
    inputs: int,
    meaning: str,
    seen: Seen = Seen.BOTH,
    formats: str = "DL16, FP32",
    constants: tuple[str, ...] = (),
    *,
    exact: bool = False,
) -> HardwareFunction:
    return HardwareFunction(name, Group.ELEMENTWISE, inputs, meaning, seen, formats, constants, exact=exact)


def _reduction(
    name: str,
    meaning: str,
    seen: Seen = Seen.BOTH,
    constants: tuple[str, ...] = (),
    *,
    nonstick: bool = True,
    formats: str = "DL16, FP32",
    exact: bool = False,
) -> HardwareFunction:
    return HardwareFunction(
        name, Group.REDUCTION, 1, meaning, seen, formats, constants, nonstick, accumulates=True, exact=exact
    )


_ALL = (
    _matrix("batchmatmul", "sums of products over the dim the result lacks", Seen.FILE, "DL16"),
    _matrix("batchmatmulfp8", "the same on FP8 operands; scales are separate products", Seen.BOTH, "FP8 to DL16"),
    _matrix("batchmatmulint8", "on 8-bit integers; how results are scaled is not public", Seen.UNSETTLED, "INT8"),
    _matrix("batchmatmulint4", "on 4-bit integers; how results are scaled is not public", Seen.UNSETTLED, "INT4"),
    _matrix("conv2d", "sums of products over input channels and a window", Seen.BOTH, "DL16"),
    _matrix("conv2dfp8", "convolution on FP8", Seen.UNSETTLED, "FP8"),
    _matrix("conv2dint8", "convolution on 8-bit integers", Seen.UNSETTLED, "INT8"),
    _matrix("conv2dint4", "convolution on 4-bit integers", Seen.UNSETTLED, "INT4"),
    _pointwise("add", 2, "a + b", Seen.FILE, exact=True),
    _pointwise("sub", 2, "a - b", exact=True),
    _pointwise("revsub", 2, "b - a", Seen.LIST, exact=True),
    _pointwise("mul", 2, "a * b", Seen.FILE, exact=True),
    _pointwise("realdiv", 2, "a / b", Seen.FILE, exact=True),
    _pointwise("maximum", 2, "the larger", exact=True),
    _pointwise("minimum", 2, "the smaller", exact=True),
    _pointwise("equal", 2, "1 where a = b, else 0", exact=True),
    _pointwise("notequal", 2, "1 where a differs from b, else 0", exact=True),
    _pointwise("greaterequal", 2, "1 where a >= b, else 0", exact=True),
    _pointwise("lesserequal", 2, "1 where a <= b, else 0", exact=True),
    _pointwise("greaterthan", 2, "1 where a > b, else 0", Seen.FRONT_END, exact=True),
    _pointwise("lesserthan", 2, "1 where a < b, else 0", Seen.FRONT_END, exact=True),
    _pointwise("where3", 3, "the second where the first is not 0, else the third", exact=True),
    _pointwise("biasadd", 2, "a + bias", Seen.LIST, exact=True),
    _pointwise("batchnormfwd", 3, "scale * x + shift", Seen.LIST),
    _pointwise("fnms", 3, "a product and a difference; the signs are not public", Seen.UNSETTLED),
    _pointwise("layernormnorm", 5, "(x - mean) * norm * weight + bias"),
    _pointwise("layernormscale", 1, "1 / sqrt(variance + eps) from the moments of exx2", constants=("eps",)),
    _pointwise("addi32toi32", 2, "a + b on integers", Seen.FRONT_END, "INT32", exact=True),
    _pointwise("muli32toi32", 2, "a * b on integers", Seen.FRONT_END, "INT32", exact=True),
    _pointwise("abs", 1, "magnitude", exact=True),
    _pointwise("neg", 1, "-x", Seen.FILE, exact=True),
    _pointwise("reciprocal", 1, "1 / x", exact=True),
    _pointwise("relufwd", 1, "x where positive, else 0", exact=True),
    _pointwise("relu6fwd", 1, "x clipped to 0 and 6", Seen.LIST, "DL16", exact=True),
    _pointwise("leakyrelufwd", 1, "a slope where negative; where it comes from is not public", Seen.UNSETTLED, "DL16"),
    _pointwise("exp", 1, "e to the x", Seen.FILE),
    _pointwise("fastexp", 1, "e to the x, less exactly", Seen.LIST, "DL16"),
    _pointwise("sigmoid", 1, "1 / (1 + e to the -x)"),
    _pointwise("fastsigmoid", 1, "sigmoid, less exactly", Seen.LIST, "DL16"),
    _pointwise("silu", 1, "x times its sigmoid"),
    _pointwise("mish", 1, "x * tanh(softplus(x))", Seen.LIST, "DL16"),
    _pointwise("sqrt", 1, "square root", exact=True),
    _pointwise("rsqrt", 1, "1 over the square root"),
    _pointwise("log", 1, "natural logarithm", formats="DL16"),
    _pointwise("tanh", 1, "hyperbolic tangent", formats="DL16"),
    _pointwise("gelufwd", 1, "Gaussian error linear unit", formats="DL16"),
    _pointwise(
        "softplus", 1, "log(1 + e to the beta x) / beta", formats="DL16", constants=("softplusBeta", "softplusThresh")
    ),
    _pointwise("clip", 1, "x between two bounds", constants=("clipMin", "clipMax"), exact=True),
    _pointwise("floor", 1, "the largest integer not above", exact=True),
    _pointwise("maskbyindex", 2, "masks what an index picks; details are not public", Seen.UNSETTLED),
    _reduction("sum", "sum"),
    _reduction("max", "the largest", exact=True),
    _reduction("min", "the smallest", exact=True),
    _reduction("mean", "sum times a factor", constants=("scaling_factor",)),
    _reduction("absmax", "the largest magnitude", Seen.LIST, exact=True),
    _reduction("prod", "product", Seen.FRONT_END),
    _reduction(
        "exx2",
        "E[x] and E[x*x] of a row in one stick; in which lanes is not public",
        constants=("exx2scale",),
        nonstick=False,
    ),
    _reduction("exx2_zeromean", "E[x*x], E[x] taken as 0", Seen.UNSETTLED, ("exx2scale",), nonstick=False),
    _reduction("quantscalepertoken", "a scale per row", Seen.UNSETTLED, nonstick=False, formats="DL16"),
    _reduction(
        "quantscalepertokenfp8",
        "the largest magnitude, clipped, times a factor",
        constants=("clipMin", "clipMax", "mulConst"),
        nonstick=False,
        formats="DL16",
    ),
    HardwareFunction("topkvalue", Group.SELECTION, 1, "the k largest, in falling order", Seen.BOTH, exact=True),
    HardwareFunction("topkindex", Group.SELECTION, 1, "where the k largest are", Seen.BOTH, exact=True),
    HardwareFunction("keepbyindex", Group.SELECTION, 2, "details are not public", Seen.UNSETTLED),
    HardwareFunction("maxpoolfwd", Group.WINDOW, 1, "the largest in a window", Seen.LIST, "DL16", exact=True),
    HardwareFunction("avgpoolfwd", Group.WINDOW, 1, "sum over a window times nmap", Seen.BOTH, "DL16", ("nmap",)),
    HardwareFunction("avgpoolnmapfwd", Group.WINDOW, 2, "details are not public", Seen.UNSETTLED, "DL16"),
    HardwareFunction(
        "depthwiseconv2dnative",
        Group.WINDOW,
        2,
        "sums of products over a window, channel by channel",
        Seen.BOTH,
        "DL16",
        accumulates=True,
    ),
    HardwareFunction("identity", Group.MOVEMENT, 1, "x; also gathers and slices", Seen.BOTH, exact=True),
    HardwareFunction(
        "ReStickifyOpHBM", Group.MOVEMENT, 1, "x with another dim in the stick", Seen.FILE, "16-bit", exact=True
    ),
    HardwareFunction(
        "ReStickifyOpLx", Group.MOVEMENT, 1, "the same between scratchpads", Seen.RESEARCH, "16-bit", exact=True
    ),
    HardwareFunction(
        "shuffle", Group.MOVEMENT, 1, "x spread over the cores in another way", Seen.BOTH, "any", exact=True
    ),
    HardwareFunction(
        "dl16tofp32", Group.CONVERSION, 1, "DL16 to FP32: one stick becomes two", Seen.BOTH, "DL16", exact=True
    ),
    HardwareFunction(
        "fp32todl16", Group.CONVERSION, 1, "FP32 to DL16: two sticks become one", Seen.BOTH, "FP32", exact=True
    ),
    HardwareFunction(
        "fp8todl16", Group.CONVERSION, 1, "FP8 to DL16: one stick becomes two", Seen.BOTH, "FP8", exact=True
    ),
    HardwareFunction(
        "qfp8ch", Group.CONVERSION, 1, "DL16 to FP8, two sticks of one dim into one", Seen.BOTH, "DL16", exact=True
    ),
    HardwareFunction(
        "qfp8mb", Group.CONVERSION, 1, "DL16 to FP8, eight lanes of each of two rows", Seen.LIST, "DL16", exact=True
    ),
    HardwareFunction(
        "qfp8wt", Group.CONVERSION, 1, "DL16 to FP8, lane by lane of two rows", Seen.BOTH, "DL16", exact=True
    ),
    *(
        HardwareFunction(
            name, Group.CONVERSION, 1, "DL16 to 8-bit integers", Seen.UNSETTLED, "DL16", ("scaleact", "shiftact")
        )
        for name in ("csqint8ch", "csqint8mb", "csqint8wt")
    ),
    *(
        HardwareFunction(name, Group.CONVERSION, 1, "DL16 to 4-bit integers", Seen.UNSETTLED, "DL16")
        for name in ("csqint4", "csqint4wt")
    ),
    HardwareFunction("fp32toint32", Group.CONVERSION, 1, "FP32 to integers", Seen.BOTH, "FP32", exact=True),
    HardwareFunction("int32tofp32", Group.CONVERSION, 1, "integers to FP32", Seen.BOTH, "INT32", exact=True),
)

FUNCTIONS: dict[str, HardwareFunction] = {entry.name: entry for entry in _ALL}

NONSTICK = "nonstick"


def function_of(name: str) -> HardwareFunction | None:
    """The function a file's `opFuncName` stands for, with or without the suffix; None where no source has it."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    plain = FUNCTIONS.get(name.removesuffix(NONSTICK))
    return plain if plain is not None and plain.nonstick and name.endswith(NONSTICK) else None
