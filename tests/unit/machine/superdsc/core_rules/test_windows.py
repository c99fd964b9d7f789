"""Convolution and pooling, from a descriptor to JSON and back, run on memory; torch is the judge."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from spyre_mlir.dialects.superdsc.model.descriptor import (
    Descriptor,
    Dim,
    OpClass,
    Window,
)
from spyre_mlir.dialects.superdsc.model.function_constants import named_constant
from spyre_mlir.errors import MachineFault, UnsupportedError
from tests.unit.machine.class_cases import (
    RANDOM,
    Shape,
    close,
    descriptor,
    dsc_of,
    get,
    run,
)

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
    dsc = dsc_of(view)
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
