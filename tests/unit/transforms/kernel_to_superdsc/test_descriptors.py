"""Reductions of partly filled sticks: what stands in for padding wins over no number, however far out."""

from __future__ import annotations

import json
from typing import Literal

import pytest
import torch

import spyre_mlir
from spyre_mlir.backend.write import write_json
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.dialects.superdsc.model.descriptor import OpClass
from spyre_mlir.errors import LoweringError
from spyre_mlir.text.render import parse_module
from spyre_mlir.transforms.convert_spyre_kernel_to_superdsc import ConvertSpyreKernelToSuperdscPass
from spyre_mlir.transforms.kernel_to_superdsc.descriptors import _labels
from spyre_mlir.universe import make_context


class Extremes(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.amax(-1), x.amin(-1), x.amax(0), x.amin(0)


@pytest.mark.parametrize("numerics", ["exact", "device"])
@pytest.mark.parametrize("sign", [1, -1])
def test_numbers_beyond_half(numerics: Literal["exact", "device"], sign: int) -> None:
    """70 columns are two sticks: all elements are beyond 65504, and numbers of DL16."""
    x = sign * (2.0 ** (17 + torch.arange(3 * 70) % 15)).reshape(3, 70)
    compiled = spyre_mlir.compile(Extremes(), (x,), numerics=numerics)
    for got, wanted in zip(compiled(x), Extremes()(x), strict=True):
        assert torch.equal(got, wanted)


@pytest.mark.parametrize(("masks", "words"), [("largest", {0xFFFE, 0x7FFE}), ("half", {0xDE00, 0x5E00})])
def test_the_constant_of_padding_is_an_option(masks: Literal["largest", "half"], words: set[int]) -> None:
    """torch-spyre writes the largest half; its words in DL16 are published."""
    context = make_context()
    module = parse_module(spyre_mlir.compile(Extremes(), (torch.ones(3, 70),)).mlir("spyre.kernel"), context)
    ConvertSpyreKernelToSuperdscPass(masks=masks).apply(context, module)
    texts = [write_json(op) for op in module.ops if isinstance(op, SdscOp)]
    dscs = [dsc for text in texts for top in json.loads(text).values() for dsc in top["dscs_"][0].values()]
    constants = [constant for dsc in dscs if dsc["constantInfo_"] != "{}" for constant in dsc["constantInfo_"].values()]
    found = {c["data_"]["data_"]["[0, 0, 0]"][0] for c in constants if c["name_"] == "samv-maskvalue"}
    assert found == words


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("extent", [3, 33, 70])
def test_whole_numbers_beyond_half(extent: int, sign: int) -> None:
    x = sign * (2**24 - 1 - 7 * torch.arange(2 * extent)).reshape(2, extent)
    compiled = spyre_mlir.compile(Extremes(), (x,), numerics="device")
    for got, wanted in zip(compiled(x), Extremes()(x), strict=True):
        assert torch.equal(got, wanted)


@pytest.mark.parametrize(
    ("names", "kind", "labels"),
    [
        (["a"], OpClass.POINTWISE, {"a": "out"}),
        (["a", "b"], OpClass.POINTWISE, {"a": "mb", "b": "out"}),
        (["m", "n", "k"], OpClass.MATMUL, {"m": "mb", "n": "out", "k": "in"}),
    ],
)
def test_loops_have_the_labels_of_published_files(names: list[str], kind: OpClass, labels: dict[str, str]) -> None:
    assert _labels(names, kind) == labels


@pytest.mark.parametrize(("kind", "most"), [(OpClass.POINTWISE, 8), (OpClass.MATMUL, 7)])
def test_loops_beyond_the_labels_are_refused(kind: OpClass, most: int) -> None:
    names = [f"d{number}" for number in range(most + 1)]
    assert len(set(_labels(names[:most], kind).values())) == most
    with pytest.raises(LoweringError, match=rf"{most + 1} loops \(d0, d1, .*\), the file format has"):
        _labels(names, kind)
