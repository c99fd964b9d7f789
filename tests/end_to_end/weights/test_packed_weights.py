"""Weights of 8-bit and 4-bit integers: words on the card, wide in scratchpads alone, exact, right at every level."""

from __future__ import annotations

from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.backend.check import check_bundle
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import ComputeOp, KernelOp, ToDeviceOp, device_tensor
from spyre_mlir.errors import InputError
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context
from tests.end_to_end.weights.torchao_llama import agrees_with, llama


def _seeded(seed: int) -> torch.Generator | None:
    return torch.Generator().manual_seed(seed) if torch.get_default_device().type == "cpu" else None


class Linear8(nn.Module):
    """A linear layer with a weight of 8-bit integers and a scale per row."""

    def __init__(self, rows: int, columns: int, least: int = -128) -> None:
        super().__init__()
        draw = _seeded(rows)
        self.register_buffer("weight", torch.randint(least, -least, (rows, columns), dtype=torch.int8, generator=draw))
        self.register_buffer("scale", torch.rand(rows, generator=draw).half() / 2048)
        self.weight: torch.Tensor
        self.scale: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.weight.to(x.dtype).t()) * self.scale


class Linear4(nn.Module):
    """A linear layer with a weight of 4-bit integers, a byte each, and a scale per group of 32."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        draw = _seeded(rows)
        self.register_buffer("weight", torch.randint(-8, 8, (rows, columns), dtype=torch.int8, generator=draw))
        self.register_buffer("scale", torch.rand(rows, columns // 32, generator=draw).half())
        self.weight: torch.Tensor
        self.scale: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = self.weight.shape
        groups = self.weight.to(x.dtype).reshape(rows, -1, 32) * self.scale[:, :, None]
        return x @ groups.reshape(rows, columns).t()


def wide(model: Linear8 | Linear4) -> torch.Tensor:
    """The weight in double precision, with its scales."""
    columns = model.weight.shape[1]
    scale = model.scale.double().reshape(model.weight.shape[0], -1)
    return model.weight.double() * scale.repeat_interleave(columns // scale.shape[1], 1)


def compiled(model: nn.Module, x: torch.Tensor, **options: Any) -> CompiledModel:
    made = spyre_mlir.compile(model, (x,), host_fallback="error", **options)
    assert isinstance(made, CompiledModel)
    return made


@cache
def linear(kind: type[Linear8 | Linear4]) -> tuple[Linear8 | Linear4, CompiledModel]:
    """A layer and its program for two rows, for tests that leave both as they are."""
    model = kind(512, 512)
    return model, compiled(model, inputs(2, 512))


def inputs(rows: int, columns: int) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(columns)).half()


def sent_bytes(program: CompiledModel, name: str) -> int:
    """Bytes on the card that hold a host tensor, in all its forms."""
    module = parse_module(program.mlir("spyre.kernel"), make_context())
    sent = [op for op in module.walk() if isinstance(op, ToDeviceOp) and op.source.name_hint == name]
    return sum(device_tensor(op.result).sticks * 128 for op in sent)


def large_stores(program: CompiledModel, elements: int) -> list[str]:
    """Kernels that write at least so many elements to device memory."""
    module = parse_module(program.mlir("spyre.kernel"), make_context())
    written = [(op, device_tensor(op.output)) for op in module.walk() if isinstance(op, KernelOp)]
    assert any(isinstance(op, ComputeOp) and op.function_name == "addi32toi32" for op, _ in written)
    return [str(op) for op, tensor in written if tensor.space != "lx" and prod(tensor.layout.extents) >= elements]


@pytest.mark.parametrize("kind", [Linear8, Linear4])
@pytest.mark.parametrize(("rows", "columns", "tokens"), [(512, 256, 3), (1024, 96, 1), (128, 1024, 2), (64, 8192, 1)])
def test_every_level_agrees_with_torch(kind: type[Linear8 | Linear4], rows: int, columns: int, tokens: int) -> None:
    model, x = kind(rows, columns), inputs(tokens, columns)
    program = compiled(model, x)
    assert "IEEE_INT32" in program.mlir("spyre.kernel")
    checked = program.verify(x)
    assert checked, str(checked)
    wanted = x.double() @ wide(model).t()
    assert float((program(x).double() - wanted).abs().max() / wanted.abs().max()) < 4e-3


@pytest.mark.parametrize(("kind", "share"), [(Linear8, 0.55), (Linear4, 0.30)])
@pytest.mark.parametrize(("rows", "columns", "tokens"), [(512, 512, 32), (1024, 1024, 1)])
def test_the_card_holds_few_bits(
    kind: type[Linear8 | Linear4], share: float, rows: int, columns: int, tokens: int
) -> None:
    program = compiled(kind(rows, columns), inputs(tokens, columns))
    assert large_stores(program, rows * columns // 8) == []
    assert sent_bytes(program, "b_weight") == rows * columns // (2 if kind is Linear4 else 1)
    assert sent_bytes(program, "b_weight") + sent_bytes(program, "b_scale") <= share * rows * columns * 2


@pytest.mark.parametrize("kind", [Linear8, Linear4])
def test_a_weight_larger_than_the_scratchpads_is_unpacked_in_a_loop(kind: type[Linear8 | Linear4]) -> None:
    """The model has numbers where their bits are looked up; as DL16 they would take 105 MB."""
    with torch.device("meta"):
        model = kind(12800, 4096)
    if kind is Linear4:
        model.weight = torch.zeros(12800, 4096, dtype=torch.int8)
    program = compiled(model, inputs(1, 4096).to("meta"))
    assert large_stores(program, 4096 * 12800 // 8) == []
    assert "scf.for" in program.mlir("spyre.kernel")
    most = 1.55 if kind is Linear8 else 1.75
    assert program.timeline().total_us < most * program.timeline().roofline_us


@pytest.mark.parametrize("numerics", ["device", "exact"])
@pytest.mark.parametrize("least", [-128, -8])
def test_every_number_arrives(least: int, numerics: Any) -> None:
    """Words of all pairs of neighbours, and of the least and largest numbers, by a product that picks each."""
    count = 8 if least == -8 else 4
    model = Linear8(64 * count, 1024, least)
    edges = torch.tensor([least, least + 1, -1, 0, 1, -least - 2, -least - 1], dtype=torch.int8)
    for digit in range(count):
        model.weight[64 * digit : 64 * digit + 32] = edges[torch.randint(0, 7, (32, 1024), generator=_seeded(digit))]
    every = torch.arange(2 * -least)
    for digit in range(count - 1):
        model.weight[64 * digit + 32] = (every[torch.arange(1024) % (2 * -least)] + least).to(torch.int8)
        model.weight[64 * digit + 96] = (every[torch.arange(1024) // 4 % (2 * -least)] + least).to(torch.int8)
    model.scale.fill_(1)
    x = torch.eye(1024).half()
    got = compiled(model, x, numerics=numerics)(x)
    np.testing.assert_array_equal(got.numpy(), model.weight.t().numpy())


@pytest.mark.parametrize("kind", [Linear8, Linear4])
def test_files_have_published_functions_and_formats_alone(kind: type[Linear8 | Linear4], tmp_path: Path) -> None:
    """Copies of words are labelled as torch-spyre labels copies of 32-bit integers; no rule has a remark."""
    linear(kind)[1].save(tmp_path / "saved")
    texts = [file.read_text() for file in (tmp_path / "saved").rglob("sdsc_*.json")]
    copies = [text for text in texts if '"opFuncName": "identity"' in text and '"wordLength": 4' in text]
    assert copies and not any("IEEE_INT32" in text for text in copies)
    assert [str(one) for one in check_bundle(tmp_path / "saved", make_context())] == []


def test_equal_layers_share_the_kernels_of_one() -> None:
    layers = [Linear8(512, 512) for _ in range(4)]
    model, x = nn.Sequential(*layers), inputs(2, 512)
    program = compiled(model, x)
    wanted = x.double()
    for layer in layers:
        wanted = wanted @ wide(layer).t()
    assert float((program(x).double() - wanted).abs().max() / wanted.abs().max()) < 1e-2
    assert large_stores(program, 512 * 512 // 8) == []


def test_numbers_of_more_bits_are_refused_when_they_are_sent() -> None:
    model, program = linear(Linear4)
    before = model.weight[3, 5].item()
    model.weight[3, 5] = 8
    with pytest.raises(InputError, match=r"holds -8 to 8, and the program packs it as integers of 4 bits, -8 to 7"):
        program(inputs(2, 512))
    model.weight[3, 5] = before


class Symmetric4(Linear4):
    """The same with zero points, as torchao stores them: all of symmetric weights are zero."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__(rows, columns)
        self.register_buffer("zero", torch.zeros_like(self.scale, dtype=torch.int8))
        self.zero: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = self.weight.shape
        groups = self.weight.to(x.dtype).reshape(rows, -1, 32) - self.zero.to(x.dtype)[:, :, None]
        return x @ (groups * self.scale[:, :, None]).reshape(rows, columns).t()


def test_zero_points_that_are_zero_are_not_sent() -> None:
    model, x = Symmetric4(512, 512), inputs(3, 512)
    program = compiled(model, x)
    assert large_stores(program, 512 * 512 // 8) == []
    assert sent_bytes(program, "b_zero") == 0
    assert sent_bytes(program, "b_weight") + sent_bytes(program, "b_scale") <= 0.30 * 2 * 512 * 512
    checked = program.verify(x)
    assert checked, str(checked)
    model.zero[3, 2] = 1
    with pytest.raises(InputError, match=r"'zero' holds 1 at \[3, 2\], and was zero when the model was compiled"):
        program(x)


def test_an_option_sends_them_as_dl16() -> None:
    model, x = Linear8(512, 512), inputs(1, 512)
    program = compiled(model, x, packed_weights=False)
    assert sent_bytes(program, "b_weight") == 2 * 512 * 512
    assert "IEEE_INT32" not in program.mlir("spyre.kernel")


def test_a_weight_that_is_read_otherwise_too_stays_dl16() -> None:
    class Summed(Linear8):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) - (self.weight.to(x.dtype) * x[:1]).sum(1)

    model, x = Summed(512, 512), inputs(1, 512)
    assert "IEEE_INT32" not in compiled(model, x).mlir("spyre.kernel")


def test_a_saved_program_has_the_integers_and_packs_them_when_it_is_loaded(tmp_path: Path) -> None:
    x, program = inputs(2, 512), linear(Linear4)[1]
    program.save(tmp_path / "saved", host_weights=False)
    held = sum((tmp_path / "saved" / name).stat().st_size for name in ("data.safetensors", "weights.safetensors"))
    assert held < 0.30 * 2 * 512 * 512 + 4096
    loaded: Any = spyre_mlir.load(tmp_path / "saved")
    assert torch.equal(loaded(x), program(x))


@pytest.mark.slow(reason="a Llama layer of width 2048 takes half a minute; single layers run by default")
@pytest.mark.parametrize(("bits", "share"), [(8, 0.55), (4, 0.30)])
def test_a_llama_quantized_by_torchao(bits: int, share: float) -> None:
    """A half and a quarter of the bytes of float16 with scales, nothing stored wide, the numbers of torchao itself."""
    pytest.importorskip("torchao")
    from torchao.quantization import Int8WeightOnlyConfig, IntxWeightOnlyConfig, quantize_
    from torchao.quantization.granularity import PerGroup

    model, tokens, linears = llama(2048, 5632, 32, 8)
    int4: Any = getattr(torch, "int4", None)
    groups = IntxWeightOnlyConfig(weight_dtype=int4, granularity=PerGroup(32))
    quantize_(model, Int8WeightOnlyConfig() if bits == 8 else groups)
    program: Any = spyre_mlir.compile(model, (tokens,))
    assert large_stores(program, 512 * 2048 // (32 // bits)) == []
    module = parse_module(program.mlir("spyre.kernel"), make_context())
    sent = [op for op in module.walk() if isinstance(op, ToDeviceOp) and "parametrizations" in str(op.source.name_hint)]
    assert 0 < sum(device_tensor(op.result).sticks * 128 for op in sent) <= share * linears
    assert agrees_with(model, program, tokens)
