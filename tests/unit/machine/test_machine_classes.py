"""Operations with rules of their own, from a descriptor to JSON and back, run on memory; torch and numpy are the judges."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pytest
import torch

from spyre_mlir.dialects.superdsc.build import build
from spyre_mlir.dialects.superdsc.constants import named_constant
from spyre_mlir.dialects.superdsc.describe import describe
from spyre_mlir.dialects.superdsc.descriptor import (
    Descriptor,
    Dim,
    OpClass,
    Operand,
    SymbolicSize,
    Version,
    Window,
    start_offsets,
)
from spyre_mlir.errors import EmitError, InputError, MachineFault, UnsupportedError
from spyre_mlir.machine.memory import ExactMemory
from spyre_mlir.machine.opfuncs import known_op_funcs
from spyre_mlir.machine.special import RULES
from spyre_mlir.machine.superdsc import execute
from spyre_mlir.ops.functions import FUNCTIONS, Seen

DL16, FP32, INT32 = "SEN169_FP16", "IEEE_FP32", "IEEE_INT32"
Array = npt.NDArray[np.float64]
RANDOM = np.random.default_rng(5)


@dataclass(frozen=True)
class Shape:
    """An operand without addresses: dims inner to outer, their extents, the stick dim."""

    order: tuple[str, ...]
    extents: tuple[int, ...]
    stick: str | None
    format: str = DL16

    def placed(self, base: int, dims: tuple[Dim, ...], kind: OpClass) -> Operand:
        bare = Operand(self.order, self.extents, self.stick, self.format, ())
        return replace(bare, start=tuple(str(base + offset) for offset in start_offsets(dims, bare, kind)))


def descriptor(func: str, kind: OpClass, dims: tuple[Dim, ...], *shapes: Shape, **more: object) -> Descriptor:
    """Operands one after the other in memory, 1 MiB apart."""
    operands = tuple(shape.placed(n << 20, dims, kind) for n, shape in enumerate(shapes))
    unit = "pt" if kind is OpClass.CONVOLUTION else "sfp"
    return Descriptor(0, func, unit, kind, dims, operands, **more)  # pyright: ignore


def addresses(operand: Operand) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Byte address of every element, axes outer to inner, by the published formula."""
    labels = list(reversed(operand.order))
    grids = np.indices([dict(zip(operand.order, operand.extents, strict=True))[label] for label in labels])
    lanes, width = operand.elements_per_stick, 128 // operand.elements_per_stick
    stride, total = 1, np.zeros(grids.shape[1:], dtype=np.int64)
    for label, extent in zip(operand.order, operand.extents, strict=True):
        index = grids[labels.index(label)]
        in_stick = label == operand.stick
        total += 128 * stride * (index // lanes if in_stick else index) + (width * (index % lanes) if in_stick else 0)
        stride *= -(-extent // lanes) if in_stick else extent
    return labels, int(operand.start[0]) + total


def put(memory: ExactMemory, operand: Operand, values: Array, labels: str) -> None:
    """Store an array whose axes are `labels`, words apart by blanks."""
    own, where = addresses(operand)
    moved = np.transpose(values, [labels.split().index(label) for label in own])
    inside = tuple(slice(0, n) for n in moved.shape)
    memory.store(where[inside], moved, operand.format)


def get(memory: ExactMemory, operand: Operand, labels: str) -> Array:
    own, where = addresses(operand)
    values, _ = memory.load(where, operand.format)
    return np.transpose(values, [own.index(label) for label in labels.split()])


def stored(view: Descriptor) -> Descriptor:
    """What the file of a descriptor says; it must be the same."""
    described = describe(build(view, Version.TSNEW))
    assert replace(described, op_format=None) == view
    return described


def run(view: Descriptor, *inputs: tuple[Array, str], symbols: Mapping[int, int] | None = None) -> ExactMemory:
    """Write the file, read it back, and run what was read on memory with the inputs."""
    described = stored(view)
    memory = ExactMemory()
    memory.add_region("all", 0, len(view.operands) << 20)
    for operand, (values, labels) in zip(view.operands, inputs, strict=False):
        put(memory, operand, values, labels)
    execute(described, memory, symbols)
    return memory


def close(got: Array, wanted: object) -> None:
    np.testing.assert_allclose(got, np.asarray(wanted, dtype=np.float64), rtol=1e-12, atol=1e-12)


# Windows -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sliding:
    """A window of k x k over h x w with a stride, a dilation and padding; i divided over cores."""

    size: int = 8
    places: int = 3
    stride: int = 1
    dilation: int = 1
    pad: int = 0
    cores: int = 1

    @property
    def outputs(self) -> int:
        return (self.size + 2 * self.pad - self.dilation * (self.places - 1) - 1) // self.stride + 1

    def windows(self) -> tuple[Window, ...]:
        total = self.size + 2 * self.pad
        return tuple(
            Window(dim, over, total, self.stride, self.dilation, self.pad, self.pad)
            for dim, over in (("i", "ki"), ("j", "kj"))
        )


SLIDING = {
    "plain": Sliding(),
    "stride": Sliding(size=9, stride=2),
    "dilation": Sliding(dilation=2),
    "padding": Sliding(pad=1),
    "stride and padding": Sliding(size=7, stride=2, pad=1),
    "divided": Sliding(cores=3),
    "divided with stride": Sliding(size=9, stride=2, cores=2),
    "a row no window reaches": Sliding(size=8, stride=2),
}


def _start_of_rows(view: Descriptor, case: Sliding) -> Descriptor:
    """The input's slices start where the windows of a core start: outputs of a core times the stride."""
    source = view.operands[0]
    step = source.stick_strides()["i"] * 128 * case.stride * view.dim("i").per_core
    starts = tuple(str(int(source.start[0]) + step * row["i"]) for row in view.core_slices)
    return replace(view, operands=(replace(source, start=starts), *view.operands[1:]))


@pytest.mark.parametrize("name", SLIDING)
def test_conv2d_is_torch_s(name: str) -> None:
    case = SLIDING[name]
    o, n = case.outputs, case.size
    dims = (
        Dim("mb", 2),
        Dim("i", o, case.cores),
        Dim("j", o),
        Dim("out", 64),
        Dim("in", 64),
        Dim("ki", case.places),
        Dim("kj", case.places),
    )
    view = descriptor(
        "conv2d",
        OpClass.CONVOLUTION,
        dims,
        Shape(("j", "in", "i", "mb"), (n, 64, n, 2), "in"),
        Shape(("in", "out", "kj", "ki"), (64, 64, case.places, case.places), "out"),
        Shape(("j", "out", "i", "mb"), (o, 64, o, 2), "out"),
        windows=case.windows(),
    )
    x, w = RANDOM.normal(size=(2, 64, n, n)), RANDOM.normal(size=(64, 64, case.places, case.places))
    memory = run(_start_of_rows(view, case), (x, "mb in i j"), (w, "out in ki kj"))
    wanted = torch.nn.functional.conv2d(
        torch.tensor(x), torch.tensor(w), stride=case.stride, dilation=case.dilation, padding=case.pad
    )
    got = get(memory, view.output, "mb out i j")
    np.testing.assert_allclose(got, wanted.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [name for name, case in SLIDING.items() if case.dilation == 1])
def test_convolution_by_channel_is_torch_s(name: str) -> None:
    case = SLIDING[name]
    o, n, k = case.outputs, case.size, case.places
    dims = (Dim("out", 128), Dim("i", o, case.cores), Dim("j", o), Dim("ki", k), Dim("kj", k))
    view = descriptor(
        "depthwiseconv2dnative",
        OpClass.DEPTHWISE,
        dims,
        Shape(("j", "out", "i"), (n, 128, n), "out"),
        Shape(("kj", "ki", "out"), (k, k, 128), "out"),
        Shape(("j", "out", "i"), (o, 128, o), "out"),
        windows=case.windows(),
    )
    x, w = RANDOM.normal(size=(128, n, n)), RANDOM.normal(size=(128, k, k))
    memory = run(_start_of_rows(view, case), (x, "out i j"), (w, "out ki kj"))
    wanted = torch.nn.functional.conv2d(
        torch.tensor(x)[None], torch.tensor(w)[:, None], stride=case.stride, padding=case.pad, groups=128
    )[0]
    close(get(memory, view.output, "out i j"), wanted)


def _pool(func: str, case: Sliding) -> Descriptor:
    o, n, k = case.outputs, case.size, case.places
    dims = (Dim("i", o, case.cores), Dim("j", o), Dim("out", 64), Dim("ki", k), Dim("kj", k))
    constants = (named_constant("nmap", 1 / k**2),) if func == "avgpoolfwd" else ()
    shapes = (Shape(("j", "out", "i"), (n, 64, n), "out"), Shape(("j", "out", "i"), (o, 64, o), "out"))
    return descriptor(func, OpClass.POOLING, dims, *shapes, windows=case.windows(), constants=constants)


@pytest.mark.parametrize("name", ["plain", "stride", "padding", "divided"])
def test_pooling_is_torch_s(name: str) -> None:
    case = replace(SLIDING[name], places=2)
    case = replace(case, cores=1) if case.outputs % case.cores else case
    x = RANDOM.normal(size=(64, case.size, case.size))
    given = torch.tensor(x)[None]
    for func, judge in (("avgpoolfwd", torch.nn.functional.avg_pool2d), ("maxpoolfwd", torch.nn.functional.max_pool2d)):
        view = _pool(func, case)
        memory = run(_start_of_rows(view, case), (x, "out i j"))
        close(get(memory, view.output, "out i j"), judge(given, 2, case.stride, case.pad)[0])


def test_windowed_json_is_what_the_newest_front_end_writes() -> None:
    """By hand: 8 x 8 in, window 3, stride 1: 6 out, three cores of 2. Each core reads (2 - 1) * 1 + 3 = 4 rows, 2 apart."""
    case = SLIDING["divided"]
    dims = (Dim("i", 6, 3), Dim("j", 6), Dim("out", 64), Dim("in", 64), Dim("ki", 3), Dim("kj", 3))
    shapes = (
        Shape(("j", "in", "i"), (8, 64, 8), "in"),
        Shape(("in", "out", "kj", "ki"), (64, 64, 3, 3), "out"),
        Shape(("j", "out", "i"), (6, 64, 6), "out"),
    )
    view = descriptor("conv2d", OpClass.CONVOLUTION, dims, *shapes, windows=case.windows())
    dsc = _dsc(view)
    axis = {"padFront_": 0, "padBack_": 0, "totalSize_": 8, "stride_": 1, "dilation_": 1}
    wanted = {"i": {**axis, "windowDim_": "ki"}, "j": {**axis, "windowDim_": "kj"}}
    assert dsc["N_"]["paddingSizes_"] == wanted
    assert dsc["dataStageParam_"]["0"]["ss_"]["paddingSizes_"] == wanted
    assert dsc["dataStageParam_"]["0"]["el_"]["i_"] == 2
    assert dsc["pdsRelation_"] == {"isPdsReuse": 1}
    assert dsc["primaryDsInfo_"]["KERNEL"] == {
        "layoutDimOrder_": ["in", "out", "kj", "ki"],
        "stickDimOrder_": ["out"],
        "stickSize_": [64],
        "stickRepl_": [1],
    }
    source, weights, _ = dsc["scheduleTree_"]
    assert source["padding_"] == {"j": "padded_fullspan_wunneeded", "i": "padded_fullspan_wunneeded"} or source[
        "padding_"
    ] == {"i": "padded_fullspan_wunneeded", "j": "padded_fullspan_wunneeded"}
    assert "padding_" not in weights
    entry = source["coordinates_"]["coordInfo"]["i"]
    assert entry["padding"] == "padded_fullspan_wunneeded"
    assert [f["Affine"]["alpha_"] for f in entry["folds"]["dim_prop_func"]] == [2, 0, 0, 1]
    assert [p["factor_"] for p in entry["folds"]["dim_prop_attr"]] == [3, 1, 1, 4]
    assert dsc["labeledDs_"][0]["memOrg_"]["hbm"] == {
        "isPresent": 1,
        "isPadded": 1,
        "isZeroPadded": 0,
        "dsOffset": 0,
        "allocateNode_": "allocate-Tensor0_hbm",
    }
    assert dsc["labeledDs_"][2]["memOrg_"]["lx"]["isPadded"] == 0
    assert dsc["computeOp_"][0]["exUnit"] == "pt"


def _dsc(view: Descriptor) -> dict[str, object] | object:
    from spyre_mlir.dialects.superdsc.mirror import sdsc_to_json

    ((_, top),) = sdsc_to_json(build(view, Version.TSNEW)).items()
    ((_, dsc),) = top["dscs_"][0].items()  # pyright: ignore
    return dsc  # pyright: ignore


def test_divided_padding_is_refused() -> None:
    case = Sliding(pad=1, cores=2)
    x = RANDOM.normal(size=(64, 8, 8))
    with pytest.raises(UnsupportedError, match="padding of dim i, which is divided"):
        run(_pool("maxpoolfwd", case), (x, "out i j"))


def test_unwritten_input_of_a_convolution_is_a_fault() -> None:
    view = _pool("avgpoolfwd", Sliding())
    depthwise = descriptor(
        "depthwiseconv2dnative",
        OpClass.DEPTHWISE,
        view.dims,
        Shape(("j", "out", "i"), (8, 64, 8), "out"),
        Shape(("kj", "ki", "out"), (3, 3, 64), "out"),
        Shape(("j", "out", "i"), (6, 64, 6), "out"),
        windows=view.windows,
    )
    with pytest.raises(MachineFault, match="never written enter a sum"):
        run(depthwise, (RANDOM.normal(size=(60, 8, 8)), "out i j"), (RANDOM.normal(size=(64, 3, 3)), "out ki kj"))


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
        run(view, (np.zeros((8, 128)), "mb out"))


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
    with pytest.raises(UnsupportedError, match=f"what {func} computes is not public"):
        run(
            descriptor(func, OpClass.POINTWISE, (Dim("mb", 8), Dim("out", 64)), shape, shape),
            (np.zeros((8, 64)), "mb out"),
        )


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
    from spyre_mlir.dialects.superdsc.mirror import sdsc_to_json

    ((_, top),) = sdsc_to_json(build(_symbolic_add(), Version.TSNEW)).items()
    assert list(top)[-4:] == [  # pyright: ignore
        "datadscs_",
        "dimToSymbolMappingOpcodeCorrection_",
        "inputSymbolsAndTags_",
        "symbolDefinitions_",
    ]
    dsc = _dsc(_symbolic_add())
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
    dsc = _dsc(view)
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


def test_eight_bit_elements_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="no rule for OpFunc 'batchmatmulfp8'"):
        execute(_product_fp8(), ExactMemory())


def test_older_generations_do_not_say_what_they_cannot() -> None:
    for view, what in ((_product_fp8(), "two dims in a stick"), (_symbolic_add(), "symbolic sizes")):
        with pytest.raises(EmitError, match=f"TS26 files have no {what}"):
            build(view, Version.TS26)


NARROW = {"fp8todl16", "qfp8ch", "qfp8mb", "qfp8wt", "batchmatmulfp8"}


def test_every_function_runs_or_is_refused_for_a_reason() -> None:
    """The reason is that nobody settled what it computes, or that memory holds no elements so narrow."""
    run_here = {*known_op_funcs(), *RULES, "conv2d", "depthwiseconv2dnative", "avgpoolfwd", "maxpoolfwd", "shuffle"}
    left = {name for name, function in FUNCTIONS.items() if function.seen is not Seen.UNSETTLED} - run_here
    assert left <= NARROW | {"quantscalepertoken"}
