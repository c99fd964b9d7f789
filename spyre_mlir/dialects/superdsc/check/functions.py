"""What the public sources say about each hardware function: unit, operands, formats, constants."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

DL16, FP32, FP8, INT32 = "SEN169_FP16", "IEEE_FP32", "SEN143_FP8", "IEEE_INT32"
MASK = "samv-maskvalue"


class Shape(Enum):
    """How a function's result is related to its inputs."""

    POINTWISE = "pointwise"
    REDUCTION = "reduction"
    MATMUL = "matmul"
    MOVE = "move"
    OTHER = "other"


@dataclass(frozen=True)
class Function:
    """One entry of the published list.

    Args:
        name: as the file spells it, without "nonstick".
        inputs: number of inputs, the accumulator not counted.
        shape: how the result is related to the inputs.
        unit: "sfp" or "pt".
        constants: names in file order, the mask not counted; None where the sources do not say.
        formats: data formats its operands may have; empty where the sources do not say.
    """

    name: str
    inputs: int
    shape: Shape = Shape.POINTWISE
    unit: str = "sfp"
    constants: tuple[str, ...] | None = ()
    formats: tuple[str, ...] = ()


def _same(names: str, inputs: int, shape: Shape = Shape.POINTWISE, formats: Iterable[str] = ()) -> list[Function]:
    return [Function(name, inputs, shape, formats=tuple(formats)) for name in names.split()]


# "Supported OpFuncs" of the SuperDSC interface specifications, with what torch-spyre's code generation adds; likely.
_ALL = (
    Function("batchmatmul", 2, Shape.MATMUL, "pt", formats=(DL16,)),
    *(Function(f"batchmatmul{kind}", 2, Shape.MATMUL, "pt") for kind in ("fp8", "int8", "int4")),
    *(Function(f"conv2d{kind}", 2, Shape.OTHER, "pt") for kind in ("", "fp8", "int8", "int4")),
    *_same("add sub mul revsub realdiv maximum minimum", 2, formats=(DL16, FP32)),
    *_same("equal notequal greaterequal lesserequal greaterthan lesserthan", 2, formats=(DL16, FP32)),
    *_same("where3 batchnormfwd fnms", 3, formats=(DL16, FP32)),
    *_same("biasadd", 2, formats=(DL16, FP32)),
    *_same("layernormnorm", 5, formats=(DL16, FP32)),
    *_same("addi32toi32 muli32toi32", 2, formats=(INT32,)),
    *_same("abs neg reciprocal relufwd exp sigmoid silu sqrt rsqrt floor", 1, formats=(DL16, FP32)),
    *_same("log tanh gelufwd fastexp fastsigmoid mish relu6fwd", 1, formats=(DL16,)),
    *_same("identity shuffle", 1),
    Function("leakyrelufwd", 1, constants=None),
    Function("softplus", 1, constants=("softplusBeta", "softplusThresh"), formats=(DL16,)),
    Function("clip", 1, constants=("clipMin", "clipMax"), formats=(DL16, FP32)),
    Function("layernormscale", 1, Shape.OTHER, constants=("eps",), formats=(DL16, FP32)),
    *_same("sum max min absmax prod", 1, Shape.REDUCTION, (DL16, FP32)),
    Function("mean", 1, Shape.REDUCTION, constants=("scaling_factor",), formats=(DL16, FP32)),
    Function("exx2", 1, Shape.REDUCTION, constants=("exx2scale",), formats=(DL16, FP32)),
    Function("exx2_zeromean", 1, Shape.REDUCTION, constants=None),
    Function("quantscalepertoken", 1, Shape.REDUCTION, constants=None),
    Function("quantscalepertokenfp8", 1, Shape.REDUCTION, constants=("clipMin", "clipMax", "mulConst")),
    *_same("topkvalue topkindex maxpoolfwd", 1, Shape.OTHER),
    *_same("maskbyindex keepbyindex depthwiseconv2dnative", 2, Shape.OTHER),
    Function("avgpoolfwd", 1, Shape.OTHER, constants=None),
    Function("avgpoolnmapfwd", 1, Shape.OTHER, constants=None),
    *_same("ReStickifyOpHBM ReStickifyOpLx", 1, Shape.MOVE),
    *_same("dl16tofp32 fp32todl16", 1, formats=(DL16, FP32)),
    *_same("fp8todl16 qfp8ch", 1, formats=(DL16, FP8)),
    *_same("fp32toint32 int32tofp32", 1, formats=(FP32, INT32)),
    *_same("qfp8mb qfp8wt csqint4 csqint4wt", 1, Shape.OTHER),
    *(Function(f"csqint8{kind}", 1, Shape.OTHER, constants=("scaleact", "shiftact")) for kind in ("ch", "mb", "wt")),
)

FUNCTIONS: dict[str, Function] = {function.name: function for function in _ALL}

# Bit patterns of the numbers that masked lanes are filled with, for DL16; torch-spyre mask constants; likely.
MASK_WORDS = {"max": 0xDE00, "min": 0x5E00, "exp": 0xD871}
