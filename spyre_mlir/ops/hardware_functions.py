"""Hardware functions a file may name: everything known about each, stated once.

Checker, machine, passes and KTIR read it here; no table keyed by a function's name stands elsewhere.

A file's `opFuncName` is one of these, or a reduction's name with "nonstick" behind it. Certainty follows one rule: a
function that both the published list and the front end have is certain; one that a single source has is likely; one
whose meaning no source settles is inferred.
"""

from __future__ import annotations

from math import copysign, inf, isinf
from typing import Any

from spyre_mlir.ops import function_forms as forms
from spyre_mlir.ops.function_facts import Group, HardwareFunction, LaneOrder, Seen, Special
from spyre_mlir.ops.table import Unit


def _matrix(name: str, meaning: str, seen: Seen, formats: str, **facts: Any) -> HardwareFunction:
    return HardwareFunction(name, Group.MATRIX, 2, meaning, seen, formats, unit=Unit.PT, **facts)


def _pointwise(
    name: str,
    inputs: int,
    meaning: str,
    seen: Seen = Seen.BOTH,
    formats: str = "DL16, FP32",
    constants: tuple[str, ...] = (),
    **facts: Any,
) -> HardwareFunction:
    return HardwareFunction(name, Group.ELEMENTWISE, inputs, meaning, seen, formats, constants, **facts)


def _reduction(
    name: str,
    meaning: str,
    seen: Seen = Seen.BOTH,
    constants: tuple[str, ...] = (),
    *,
    nonstick: bool = True,
    formats: str = "DL16, FP32",
    **facts: Any,
) -> HardwareFunction:
    return HardwareFunction(
        name, Group.REDUCTION, 1, meaning, seen, formats, constants, nonstick, accumulates=True, **facts
    )


def _conversion(
    name: str, meaning: str, seen: Seen, formats: str, constants: tuple[str, ...] = (), **facts: Any
) -> HardwareFunction:
    return HardwareFunction(name, Group.CONVERSION, 1, meaning, seen, formats, constants, **facts)


def _movement(name: str, meaning: str, seen: Seen, formats: str = "DL16, FP32", **facts: Any) -> HardwareFunction:
    return HardwareFunction(name, Group.MOVEMENT, 1, meaning, seen, formats, exact=True, **facts)


_ALL = (
    _matrix("batchmatmul", "sums of products over the dim the result lacks", Seen.FILE, "DL16", contracts=True),
    _matrix(
        "batchmatmulfp8",
        "the same on FP8 operands; scales are separate products",
        Seen.BOTH,
        "FP8 to DL16",
        contracts=True,
        packed=True,
    ),
    _matrix("batchmatmulint8", "on 8-bit integers; how results are scaled is not public", Seen.UNSETTLED, "INT8"),
    _matrix("batchmatmulint4", "on 4-bit integers; how results are scaled is not public", Seen.UNSETTLED, "INT4"),
    _matrix(
        "conv2d", "sums of products over input channels and a window", Seen.BOTH, "DL16", special=Special.CONVOLUTION
    ),
    _matrix("conv2dfp8", "convolution on FP8", Seen.UNSETTLED, "FP8"),
    _matrix("conv2dint8", "convolution on 8-bit integers", Seen.UNSETTLED, "INT8"),
    _matrix("conv2dint4", "convolution on 4-bit integers", Seen.UNSETTLED, "INT4"),
    _pointwise("add", 2, "a + b", Seen.FILE, exact=True, lifts=True, form=forms.add),
    _pointwise("sub", 2, "a - b", exact=True, form=forms.sub),
    _pointwise("revsub", 2, "b - a", Seen.LIST, exact=True, form=forms.reversed_sub),
    _pointwise("mul", 2, "a * b", Seen.FILE, exact=True, form=forms.mul),
    _pointwise("realdiv", 2, "a / b", Seen.FILE, exact=True, pole=True, form=forms.div),
    _pointwise("maximum", 2, "the larger", exact=True, picks=True, lifts=True, form=forms.maximum),
    _pointwise("minimum", 2, "the smaller", exact=True, picks=True, form=forms.minimum),
    _pointwise("equal", 2, "1 where a = b, else 0", exact=True, form=forms.compare("oeq")),
    _pointwise("notequal", 2, "1 where a differs from b, else 0", exact=True, form=forms.compare("une")),
    _pointwise("greaterequal", 2, "1 where a >= b, else 0", exact=True, form=forms.compare("oge")),
    _pointwise("lesserequal", 2, "1 where a <= b, else 0", exact=True, form=forms.compare("ole")),
    _pointwise("greaterthan", 2, "1 where a > b, else 0", Seen.FRONT_END, exact=True, form=forms.compare("ogt")),
    _pointwise("lesserthan", 2, "1 where a < b, else 0", Seen.FRONT_END, exact=True, form=forms.compare("olt")),
    _pointwise(
        "where3",
        3,
        "the second where the first is not 0, else the third",
        exact=True,
        picks=True,
        selects=True,
        form=forms.choose,
    ),
    _pointwise("biasadd", 2, "a + bias", Seen.LIST, exact=True, form=forms.add),
    _pointwise("batchnormfwd", 3, "scale * x + shift", Seen.LIST, form=forms.scaled_and_shifted),
    _pointwise("fnms", 3, "a product and a difference; the signs are not public", Seen.UNSETTLED),
    _pointwise(
        "layernormnorm",
        5,
        "(x - mean) * norm * weight + bias",
        form=forms.normalised,
    ),
    _pointwise(
        "layernormscale",
        1,
        "1 / sqrt(variance + eps) from the moments of exx2",
        constants=("eps",),
        special=Special.INVERSE_DEVIATION,
    ),
    _pointwise("addi32toi32", 2, "a + b on integers", Seen.FRONT_END, "INT32", exact=True, form=forms.add),
    _pointwise("muli32toi32", 2, "a * b on integers", Seen.FRONT_END, "INT32", exact=True, form=forms.mul),
    _pointwise("abs", 1, "magnitude", exact=True, picks=True, form=forms.unary("math.absf")),
    _pointwise("neg", 1, "-x", Seen.FILE, exact=True, picks=True, form=forms.unary("arith.negf")),
    _pointwise("reciprocal", 1, "1 / x", exact=True, pole=True, form=forms.reciprocal),
    _pointwise("relufwd", 1, "x where positive, else 0", exact=True, picks=True, form=forms.relu),
    _pointwise("relu6fwd", 1, "x clipped to 0 and 6", Seen.LIST, "DL16", exact=True, form=forms.relu6),
    _pointwise("leakyrelufwd", 1, "a slope where negative; where it comes from is not public", Seen.UNSETTLED, "DL16"),
    _pointwise("exp", 1, "e to the x", Seen.FILE, form=forms.unary("math.exp"), positive=True, mask_words=(0xD871,)),
    _pointwise("fastexp", 1, "e to the x, less exactly", Seen.LIST, "DL16", form=forms.unary("math.exp")),
    _pointwise("sigmoid", 1, "1 / (1 + e to the -x)", form=forms.sigmoid, composed=True),
    _pointwise("fastsigmoid", 1, "sigmoid, less exactly", Seen.LIST, "DL16", form=forms.sigmoid, composed=True),
    _pointwise("silu", 1, "x times its sigmoid", form=forms.silu, composed=True),
    _pointwise("mish", 1, "x * tanh(softplus(x))", Seen.LIST, "DL16", form=forms.mish, composed=True),
    _pointwise("sqrt", 1, "square root", exact=True, form=forms.unary("math.sqrt")),
    _pointwise("rsqrt", 1, "1 over the square root", pole=True, form=forms.unary("math.rsqrt")),
    _pointwise("log", 1, "natural logarithm", formats="DL16", pole=True, form=forms.unary("math.log")),
    _pointwise("tanh", 1, "hyperbolic tangent", formats="DL16", form=forms.unary("math.tanh")),
    _pointwise("gelufwd", 1, "Gaussian error linear unit", formats="DL16", form=forms.gelu, composed=True),
    _pointwise(
        "softplus",
        1,
        "log(1 + e to the beta x) / beta",
        formats="DL16",
        constants=("softplusBeta", "softplusThresh"),
        form=forms.softplus,
        composed=True,
    ),
    _pointwise("clip", 1, "x between two bounds", constants=("clipMin", "clipMax"), exact=True),
    _pointwise("floor", 1, "the largest integer not above", exact=True, form=forms.unary("math.floor")),
    _pointwise("maskbyindex", 2, "masks what an index picks; details are not public", Seen.UNSETTLED),
    _reduction("sum", "sum", combine="arith.addf"),
    _reduction(
        "max",
        "the largest",
        exact=True,
        picks=True,
        combine="arith.maximumf",
        neutral=-inf,
        mask_words=(0xDE00, 0xFFFE),
    ),
    _reduction(
        "min",
        "the smallest",
        exact=True,
        picks=True,
        combine="arith.minimumf",
        neutral=inf,
        mask_words=(0x5E00, 0x7FFE),
    ),
    _reduction(
        "mean", "sum times a factor", constants=("scaling_factor",), combine="arith.addf", factor="scaling_factor"
    ),
    _reduction("absmax", "the largest magnitude", Seen.LIST, exact=True, combine="arith.maximumf", absolute=True),
    _reduction("prod", "product", Seen.FRONT_END, combine="arith.mulf", neutral=1.0),
    _reduction(
        "exx2",
        "E[x] and E[x*x] of a row in one stick; in which lanes is not public",
        constants=("exx2scale",),
        nonstick=False,
        special=Special.MOMENTS,
    ),
    _reduction("exx2_zeromean", "E[x*x], E[x] taken as 0", Seen.UNSETTLED, ("exx2scale",), nonstick=False),
    _reduction("quantscalepertoken", "a scale per row", Seen.UNSETTLED, nonstick=False, formats="DL16"),
    _reduction(
        "quantscalepertokenfp8",
        "the largest magnitude, clipped, times a factor",
        constants=("clipMin", "clipMax", "mulConst"),
        nonstick=False,
        formats="DL16",
        special=Special.TOKEN_SCALE,
    ),
    HardwareFunction(
        "topkvalue",
        Group.SELECTION,
        1,
        "the k largest, in falling order",
        Seen.BOTH,
        exact=True,
        special=Special.LARGEST,
    ),
    HardwareFunction(
        "topkindex",
        Group.SELECTION,
        1,
        "where the k largest are",
        Seen.BOTH,
        exact=True,
        special=Special.PLACES_OF_LARGEST,
    ),
    HardwareFunction("keepbyindex", Group.SELECTION, 2, "details are not public", Seen.UNSETTLED),
    HardwareFunction(
        "maxpoolfwd", Group.WINDOW, 1, "the largest in a window", Seen.LIST, "DL16", exact=True, special=Special.POOLING
    ),
    HardwareFunction(
        "avgpoolfwd",
        Group.WINDOW,
        1,
        "sum over a window times nmap",
        Seen.BOTH,
        "DL16",
        ("nmap",),
        special=Special.POOLING,
    ),
    HardwareFunction("avgpoolnmapfwd", Group.WINDOW, 2, "details are not public", Seen.UNSETTLED, "DL16"),
    HardwareFunction(
        "depthwiseconv2dnative",
        Group.WINDOW,
        2,
        "sums of products over a window, channel by channel",
        Seen.BOTH,
        "DL16",
        accumulates=True,
        special=Special.DEPTHWISE,
    ),
    _movement(
        "identity", "x; also gathers and slices", Seen.BOTH, picks=True, form=forms.same, lane_order=LaneOrder.KEPT
    ),
    _movement(
        "ReStickifyOpHBM",
        "x with another dim in the stick",
        Seen.FILE,
        "16-bit",
        lane_order=LaneOrder.KEPT,
        restickifies=True,
    ),
    _movement(
        "ReStickifyOpLx",
        "the same between scratchpads",
        Seen.RESEARCH,
        "16-bit",
        lane_order=LaneOrder.KEPT,
        restickifies=True,
    ),
    _movement("shuffle", "x spread over the cores in another way", Seen.BOTH, "any", special=Special.SHUFFLE),
    _conversion(
        "dl16tofp32", "DL16 to FP32: one stick becomes two", Seen.BOTH, "DL16", exact=True, lane_order=LaneOrder.WIDENED
    ),
    _conversion(
        "fp32todl16",
        "FP32 to DL16: two sticks become one",
        Seen.BOTH,
        "FP32",
        exact=True,
        lane_order=LaneOrder.NARROWED,
    ),
    _conversion(
        "fp8todl16", "FP8 to DL16: one stick becomes two", Seen.BOTH, "FP8", exact=True, lane_order=LaneOrder.WIDENED
    ),
    _conversion(
        "qfp8ch",
        "DL16 to FP8, two sticks of one dim into one",
        Seen.BOTH,
        "DL16",
        exact=True,
        lane_order=LaneOrder.NARROWED,
        eight_bits=True,
    ),
    _conversion("qfp8mb", "DL16 to FP8, eight lanes of each of two rows", Seen.LIST, "DL16", exact=True),
    _conversion("qfp8wt", "DL16 to FP8, lane by lane of two rows", Seen.BOTH, "DL16", exact=True),
    *(
        _conversion(name, "DL16 to 8-bit integers", Seen.UNSETTLED, "DL16", ("scaleact", "shiftact"))
        for name in ("csqint8ch", "csqint8mb", "csqint8wt")
    ),
    *(_conversion(name, "DL16 to 4-bit integers", Seen.UNSETTLED, "DL16") for name in ("csqint4", "csqint4wt")),
    _conversion(
        "fp32toint32",
        "FP32 to integers",
        Seen.BOTH,
        "FP32",
        exact=True,
        form=forms.unary("math.trunc"),
        converts_integers=True,
    ),
    _conversion(
        "int32tofp32",
        "integers to FP32",
        Seen.BOTH,
        "INT32",
        exact=True,
        lane_order=LaneOrder.KEPT,
        converts_integers=True,
    ),
)

FUNCTIONS: dict[str, HardwareFunction] = {entry.name: entry for entry in _ALL}

NONSTICK = "nonstick"
COPY, SELECT = FUNCTIONS["identity"].name, FUNCTIONS["where3"].name


def function_of(name: str) -> HardwareFunction | None:
    """The function a file's `opFuncName` stands for, with or without the suffix; None where no source has it."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    plain = FUNCTIONS.get(name.removesuffix(NONSTICK))
    return plain if plain is not None and plain.nonstick and name.endswith(NONSTICK) else None


def special_of(name: str) -> Special | None:
    """Return the special rules of a function, if any."""
    function = FUNCTIONS.get(name)
    return None if function is None else function.special


def picks(name: str) -> bool:
    """Return whether every result of a function is one of its operands or its negative, and thus as exact."""
    function = function_of(name)
    return function is not None and function.picks


def restickifies(name: str) -> bool:
    """Return whether a function puts another dim in the stick."""
    function = FUNCTIONS.get(name)
    return function is not None and function.restickifies


def neutral_of(name: str, largest: float) -> float:
    """Return the neutral number of a reduction; the largest number of the format replaces infinities."""
    function = function_of(name)
    neutral = 0.0 if function is None else function.neutral
    return copysign(largest, neutral) if isinf(neutral) else 0.0


__all__ = [
    "COPY",
    "FUNCTIONS",
    "NONSTICK",
    "SELECT",
    "Group",
    "HardwareFunction",
    "LaneOrder",
    "Seen",
    "Special",
    "function_of",
    "neutral_of",
    "picks",
    "restickifies",
    "special_of",
]
