"""Operations with rules of their own, from JSON, run on memory; torch and numpy are the judges."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from spyre_mlir.dialects.superdsc.codec.build import build
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_to_json
from spyre_mlir.dialects.superdsc.model.descriptor import (
    Descriptor,
    Dim,
    OpClass,
    Operand,
    SymbolicSize,
    Version,
    start_offsets,
)
from spyre_mlir.dialects.superdsc.model.function_constants import named_constant
from spyre_mlir.errors import EmitError, InputError, UnsupportedError
from spyre_mlir.hw.number_formats.dl16 import round_trip
from spyre_mlir.machine.hardware_functions import known_op_funcs
from spyre_mlir.machine.memory.choice import memory_for
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.machine.superdsc.run import execute
from spyre_mlir.ops.hardware_functions import FUNCTIONS, Seen
from tests.unit.machine.class_cases import (
    DL16,
    INT32,
    RANDOM,
    Shape,
    close,
    descriptor,
    dsc_of,
    get,
    put,
    run,
    stored,
)

# Top-k ---------------------------------------------------------------------------------------------------------------


def test_top_k_is_torch_s() -> None:
    x = RANDOM.normal(size=(64, 100))
    values, places = torch.topk(torch.tensor(x), 4, dim=1)
    dims = (Dim("mb", 64), Dim("x", 4), Dim("out", 100))
    source = Shape(("out", "mb"), (100, 64), "mb")
    for func, form, wanted in (("topkvalue", DL16, values), ("topkindex", DL16, places), ("topkindex", INT32, places)):
        view = descriptor(func, OpClass.TOP_K, dims, source, Shape(("x", "mb"), (4, 64), "mb", form))
        close(get(run(view, (x, "mb out")), view.output, "mb x"), wanted)


def test_top_k_in_the_stick_is_refused() -> None:
    dims = (Dim("mb", 64), Dim("x", 64), Dim("out", 128))
    shapes = (Shape(("mb", "out"), (64, 128), "out"), Shape(("x", "mb"), (64, 64), "mb"))
    with pytest.raises(UnsupportedError, match="dim out in the stick"):
        run(descriptor("topkvalue", OpClass.TOP_K, dims, *shapes), (np.zeros((64, 128)), "mb out"))


# Layer norm, scales --------------------------------------------------------------------------------------------------


def test_layer_norm_in_three_steps_is_torch_s() -> None:
    """exx2, layernormscale, layernormnorm on (40, 128), rows on four cores; moments stay in their sticks."""
    x, weight, bias = RANDOM.normal(size=(40, 128)), RANDOM.normal(size=128), RANDOM.normal(size=128)
    memory = ExactMemory()
    memory.add_region("all", 0, 8 << 20)
    rows, columns = Dim("mb", 40, 4), Dim("out", 128)
    dense, sparse = Shape(("mb", "out"), (40, 128), "out"), Shape(("mb",), (40,), None)
    vector = Shape(("out",), (128,), "out")

    def at(shape: Shape, slot: int, dims: tuple[Dim, ...]) -> Operand:
        return shape.placed(slot << 20, dims, OpClass.POINTWISE)

    both, lone = (rows, columns), (rows, Dim("out", 64))
    eps = float(torch.finfo(torch.float16).eps)
    steps = [
        Descriptor(
            0,
            "exx2",
            "sfp",
            OpClass.REDUCTION,
            both,
            (at(dense, 0, both), at(sparse, 1, both)),
            (named_constant("exx2scale", 1 / 128),),
        ),
        Descriptor(
            1,
            "layernormscale",
            "sfp",
            OpClass.POINTWISE,
            lone,
            (at(sparse, 1, lone), at(Shape(("mb", "out"), (40, 64), "out"), 2, lone)),
            (named_constant("eps", eps),),
        ),
        Descriptor(
            2,
            "layernormnorm",
            "sfp",
            OpClass.POINTWISE,
            both,
            (
                at(dense, 0, both),
                at(sparse, 1, both),
                at(sparse, 2, both),
                at(vector, 3, both),
                at(vector, 4, both),
                at(dense, 5, both),
            ),
        ),
    ]
    for operand, values, labels in ((0, x, "mb out"), (3, weight, "out"), (4, bias, "out")):
        put(memory, steps[2].operands[operand], values, labels)
    for step in steps:
        execute(stored(step), memory)
    wanted = torch.nn.functional.layer_norm(torch.tensor(x), (128,), torch.tensor(weight), torch.tensor(bias), eps)
    close(get(memory, steps[2].output, "mb out"), wanted)


def test_scale_of_a_quantised_row() -> None:
    x = RANDOM.normal(size=(8, 128)) * np.logspace(-3, 3, 8)[:, None]
    constants = (
        named_constant("clipMin", 2.0**-6),
        named_constant("clipMax", 256.0),
        named_constant("mulConst", 2.0**-9),
    )
    shapes = (Shape(("mb", "out"), (8, 128), "out"), Shape(("mb",), (8,), None))
    dims = (Dim("mb", 8, 2), Dim("out", 128))
    view = descriptor("quantscalepertokenfp8", OpClass.REDUCTION, dims, *shapes, constants=constants)
    largest = np.abs(x).max(axis=1)
    close(get(run(view, (x, "mb out")), view.output, "mb"), np.clip(largest, 2.0**-6, 256) / 512)


def test_a_missing_constant_is_named() -> None:
    shapes = (Shape(("mb", "out"), (8, 128), "out"), Shape(("mb",), (8,), None))
    view = descriptor("exx2", OpClass.REDUCTION, (Dim("mb", 8), Dim("out", 128)), *shapes)
    with pytest.raises(InputError, match="needs the constant 'exx2scale'"):
        run(view, (np.zeros((8, 128)), "mb out"), sound=False)


# Plain functions and reductions --------------------------------------------------------------------------------------

TORCH = {
    "softplus": (
        (named_constant("softplusBeta", 2.0), named_constant("softplusThresh", 4.0)),
        lambda x: torch.nn.functional.softplus(x, 2.0, 4.0),
    ),
    "clip": ((named_constant("clipMin", -0.5), named_constant("clipMax", 1.0)), lambda x: x.clamp(-0.5, 1.0)),
    "relu6fwd": ((), torch.nn.functional.relu6),
    "mish": ((), torch.nn.functional.mish),
    "fastsigmoid": ((), torch.sigmoid),
    "fastexp": ((), torch.exp),
}


@pytest.mark.parametrize("func", TORCH)
def test_functions_of_one_operand_are_torch_s(func: str) -> None:
    constants, judge = TORCH[func]
    shape = Shape(("mb", "out"), (8, 128), "out")
    view = descriptor(func, OpClass.POINTWISE, (Dim("mb", 8, 4), Dim("out", 128)), shape, shape, constants=constants)
    x = RANDOM.normal(size=(8, 128)) * 3
    close(get(run(view, (x, "mb out")), view.output, "mb out"), judge(torch.tensor(x)))


@pytest.mark.parametrize("func", ["sum", "max", "min", "absmax", "prod", "mean"])
@pytest.mark.parametrize("in_stick", [True, False])
def test_reductions_in_the_stick_and_beside_it(func: str, in_stick: bool) -> None:
    judges = {
        "sum": np.sum,
        "max": np.max,
        "min": np.min,
        "absmax": lambda x, axis: np.abs(x).max(axis=axis),
        "prod": np.prod,
        "mean": np.mean,
    }
    x = RANDOM.normal(size=(64, 128))
    constants = (named_constant("scaling_factor", 1 / (128 if in_stick else 64)),) if func == "mean" else ()
    dims = (Dim("mb", 64), Dim("out", 128))
    target = Shape(("mb",), (64,), None) if in_stick else Shape(("out",), (128,), "out")
    source = Shape(("mb", "out"), (64, 128), "out")
    view = descriptor(func, OpClass.REDUCTION, dims, source, target, constants=constants)
    assert view.op_func_name == (func if in_stick else func + "nonstick")
    close(get(run(view, (x, "mb out")), view.output, "mb" if in_stick else "out"), judges[func](x, axis=int(in_stick)))


@pytest.mark.parametrize("func", ["fnms", "leakyrelufwd", "keepbyindex", "csqint8ch", "exx2_zeromean"])
def test_functions_that_nobody_settled_are_refused_by_name(func: str) -> None:
    shape = Shape(("mb", "out"), (8, 64), "out")
    view = descriptor(func, OpClass.POINTWISE, (Dim("mb", 8), Dim("out", 64)), shape, shape)
    with pytest.raises(UnsupportedError, match=f"what {func} computes is not public"):
        execute(view, ExactMemory())


# Shuffle -------------------------------------------------------------------------------------------------------------


def test_a_shuffle_moves_slices_between_scratchpads() -> None:
    """(8, 256): before, core c has two rows; after, it has one stick of columns of all rows."""
    dims = (Dim("mb", 8, 4), Dim("out", 256))
    rows = tuple({"mb": core, "out": 0} for core in range(4))
    columns = tuple({"mb": 0, "out": core} for core in range(4))
    start = ("0",) * 4
    source = Operand(("mb", "out"), (2, 256), "out", DL16, start, component="lx", slices=rows)
    target = Operand(("mb", "out"), (8, 64), "out", DL16, ("4096",) * 4, component="lx", slices=columns)
    view = Descriptor(0, "shuffle", "sfp", OpClass.SHUFFLE, dims, (source, target))
    described = stored(view)
    x, memory = RANDOM.normal(size=(8, 256)), ExactMemory()
    memory.add_scratchpads()
    row, column = np.indices((8, 256))
    # In the source a core's slice is 4 sticks of 2 rows each; in the target a stick of 8 rows.
    before = memory.scratchpad_base + (row // 2) * memory.spec.lx_bytes + 128 * (2 * (column // 64) + row % 2)
    after = memory.scratchpad_base + (column // 64) * memory.spec.lx_bytes + 4096 + 128 * row
    memory.store(before + 2 * (column % 64), x, DL16)
    execute(described, memory)
    close(memory.load(after + 2 * (column % 64), DL16)[0], x)


# Symbolic sizes ------------------------------------------------------------------------------------------------------


def _symbolic_add() -> Descriptor:
    dims = (Dim("mb", 64, 4, symbolic=SymbolicSize("s0", -1, 8)), Dim("out", 64))
    ids = [tuple(str(-2 - 4 * operand - core) for core in range(4)) for operand in range(3)]
    operands = tuple(Operand(("mb", "out"), (64, 64), "out", DL16, start, symbolic=True) for start in ids)
    return Descriptor(0, "add", "sfp", OpClass.POINTWISE, dims, operands)


def test_a_symbolic_size_is_bound_when_it_runs() -> None:
    view = stored(_symbolic_add())
    memory = ExactMemory()
    memory.add_region("all", 0, 3 << 20)
    size = 24
    symbols = {-1: size} | {
        -2 - 4 * operand - core: (operand << 20) + core * (size // 4) * 128 for operand in range(3) for core in range(4)
    }
    row, column = np.indices((size, 64))
    where = 128 * row + 2 * column
    x, y = RANDOM.normal(size=(size, 64)), RANDOM.normal(size=(size, 64))
    memory.store(where, x, DL16)
    memory.store(where + (1 << 20), y, DL16)
    execute(view, memory, symbols)
    close(memory.load(where + (2 << 20), DL16)[0], x + y)
    with pytest.raises(InputError, match="size s0 = 20"):
        execute(view, memory, symbols | {-1: 20})


def test_symbolic_members_are_those_of_the_newest_front_end() -> None:
    ((_, top),) = sdsc_to_json(build(_symbolic_add(), Version.TSNEW)).items()
    assert list(top)[-4:] == [  # pyright: ignore
        "datadscs_",
        "dimToSymbolMappingOpcodeCorrection_",
        "inputSymbolsAndTags_",
        "symbolDefinitions_",
    ]
    dsc = dsc_of(_symbolic_add())
    assert dsc["dimToSymbolMapping_"] == {"mb": [-1]}  # pyright: ignore
    # 64 at most in multiples of 8, on four cores: 16 in multiples of 2.
    stage = dsc["dataStageParam_"]["0"]["ss_"]  # pyright: ignore
    assert stage["symbolicDimInfo_"] == {"mb": {"maxSize_": 16, "granularity_": 2}}
    assert math.prod(top["numWkSlicesPerDim_"].values()) == 4  # pyright: ignore


# FP8 -----------------------------------------------------------------------------------------------------------------


def _product_fp8() -> Descriptor:
    """(64, 256) times (256, 128): K on two cores; weights have 2 of K and 64 of N in a stick."""
    dims = (Dim("mb", 64), Dim("out", 128), Dim("in", 256, 2))
    left = Shape(("mb", "in"), (64, 256), "in", "SEN143_FP8").placed(0, dims, OpClass.MATMUL)
    right = replace(Shape(("in", "out"), (256, 128), "out", "SEN143_FP8").placed(0, (), OpClass.MATMUL), start=())
    right = replace(right, second_stick=("in", 2))
    offsets = start_offsets(dims, right, OpClass.MATMUL)
    right = replace(right, start=tuple(str((1 << 20) + offset) for offset in offsets))
    result = Shape(("mb", "out"), (64, 128), "out").placed(2 << 20, dims, OpClass.MATMUL)
    return Descriptor(0, "batchmatmulfp8", "pt", OpClass.MATMUL, dims, (left, right, result))


def test_an_fp8_product_is_written_and_read() -> None:
    """By hand: half of K is 128 elements: a column of 64 sticks on the left, 64 sticks of two on the right."""
    view = _product_fp8()
    assert view.operands[0].start == ("0", str(64 * 128))
    assert view.operands[1].start == (str(1 << 20), str((1 << 20) + 64 * 128))
    stored(view)
    dsc = dsc_of(view)
    assert dsc["primaryDsInfo_"]["KERNEL"] == {
        "layoutDimOrder_": ["in", "out"],
        "stickDimOrder_": ["in", "out"],
        "stickSize_": [2, 64],
    }
    entry = dsc["scheduleTree_"][0]["coordinates_"]["coordInfo"]["in"]
    assert entry["elemArr"] == 4
    # 128 a slice: one stick of 128, eight groups of eight lanes, two halves 64 apart.
    assert [f["Affine"]["alpha_"] for f in entry["folds"]["dim_prop_func"]] == [128, 0, 0, 128, 8, 64, 1]
    assert [p["factor_"] for p in entry["folds"]["dim_prop_attr"]] == [2, 1, 1, 1, 8, 2, 8]
    assert dsc["labeledDs_"][0]["wordLength"] == 1


@pytest.mark.parametrize("numerics", ["exact", "device"])
def test_an_fp8_product(numerics: str) -> None:
    """Lanes by hand: 8 s + 64 h + e of K at lane 16 s + 8 h + e on the left; 2 n + k of a stick on the right."""
    view, memory = _product_fp8(), memory_for(MachineOptions(numerics=numerics))
    left, right = (RANDOM.choice([-1.5, -0.25, 0.0, 0.5, 1.0, 3.0], size) for size in ((64, 256), (256, 128)))
    for base, size in ((0, 64 * 256), (1 << 20, 256 * 128), (2 << 20, 64 * 128 * 2)):
        memory.add_region(f"at {base}", base, size)
    m, k = np.indices(left.shape)
    slice_, half, element = k % 64 // 8, k % 128 // 64, k % 8
    memory.store((k // 128 * 64 + m) * 128 + 16 * slice_ + 8 * half + element, left, "SEN143_FP8")
    k, n = np.indices(right.shape)
    # K runs over sticks before N does: the first entry of the order is the innermost.
    memory.store((1 << 20) + (k // 2 + n // 64 * 128) * 128 + n % 64 * 2 + k % 2, right, "SEN143_FP8")
    execute(view, memory)
    m, n = np.indices((64, 128))
    got, written = memory.load((2 << 20) + (n // 64 * 64 + m) * 128 + n % 64 * 2, "SEN169_FP16")
    assert written.all()
    if numerics == "exact":
        assert np.array_equal(got, left @ right)
    else:
        assert np.array_equal(got, round_trip(left @ right))


def test_older_generations_do_not_say_what_they_cannot() -> None:
    for view, what in ((_product_fp8(), "two dims in a stick"), (_symbolic_add(), "symbolic sizes")):
        with pytest.raises(EmitError, match=f"TS26 files have no {what}"):
            build(view, Version.TS26)


NARROW = {"qfp8mb", "qfp8wt"}


def test_every_function_runs_or_is_refused_for_a_reason() -> None:
    """The reason is that nobody settled what it computes, or that memory holds no elements so narrow."""
    run_here = {*known_op_funcs(), *(name for name, function in FUNCTIONS.items() if function.special is not None)}
    left = {name for name, function in FUNCTIONS.items() if function.seen is not Seen.UNSETTLED} - run_here
    assert left <= NARROW | {"quantscalepertoken"}
