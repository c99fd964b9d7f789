"""Weights of eight bits: eight in files and on the card, wide in scratchpads alone, and right at every level."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import nn
from xdsl.dialects.scf import ForOp

import spyre_mlir
from spyre_mlir.backend.check import check_path
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.spyre.kernel import ConvertOp, KernelOp, ToDeviceOp, device_tensor
from spyre_mlir.dialects.spyre.static_loop import loop_bounds
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context
from tests.end_to_end.weights.torchao_llama import agrees_with, llama

FP8 = torch.float8_e4m3fn


def _seeded(seed: int) -> torch.Generator | None:
    return torch.Generator().manual_seed(seed) if torch.get_default_device().type == "cpu" else None


class Linear8(nn.Module):
    """A linear layer with a weight of eight-bit floats and a scale per row, applied to the weight or to the result."""

    def __init__(self, rows: int, columns: int, *, scaled_first: bool, dtype: torch.dtype = torch.float16) -> None:
        super().__init__()
        wide = torch.randn(rows, columns, generator=_seeded(rows))
        scale = wide.abs().amax(1) / 448
        self.dtype, self.scaled_first = dtype, scaled_first
        self.register_buffer("weight", (wide / scale[:, None]).to(FP8))
        self.register_buffer("scale", scale.to(dtype))
        self.weight: torch.Tensor
        self.scale: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = self.weight.to(self.dtype)
        if self.scaled_first:
            return x @ (wide * self.scale[:, None]).t()
        return (x @ wide.t()) * self.scale


def compiled(model: nn.Module, x: torch.Tensor, **options: Any) -> CompiledModel:
    made = spyre_mlir.compile(model, (x,), host_fallback="error", **options)
    assert isinstance(made, CompiledModel)
    return made


def inputs(rows: int, columns: int) -> torch.Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(columns)).half()


def wide_stores(program: CompiledModel) -> list[str]:
    """Results of conversions from eight bits that are in device memory."""
    module = parse_module(program.mlir("spyre.kernel"), make_context())
    converted = [op for op in module.walk() if isinstance(op, ConvertOp)]
    assert converted
    return [str(op) for op in converted if device_tensor(op.output).space != "lx"]


def sent_bytes(program: CompiledModel) -> dict[str, int]:
    """Bytes on the card by the names of host tensors."""
    module = parse_module(program.mlir("spyre.kernel"), make_context())
    sent = [op for op in module.walk() if isinstance(op, ToDeviceOp)]
    return {str(op.source.name_hint): device_tensor(op.result).sticks * 128 for op in sent}


@pytest.mark.parametrize("scaled_first", [False, True])
@pytest.mark.parametrize(("rows", "columns", "tokens"), [(128, 256, 4), (192, 320, 1), (70, 65, 3)])
def test_every_level_agrees_with_torch(rows: int, columns: int, tokens: int, scaled_first: bool) -> None:
    model, x = Linear8(rows, columns, scaled_first=scaled_first), inputs(tokens, columns)
    program = compiled(model, x)
    checked = program.verify(x)
    assert checked, str(checked)
    wanted = reference(model, x)
    assert float((program(x).double() - wanted).abs().max() / wanted.abs().max()) < 4e-3


def reference(model: Linear8, x: torch.Tensor) -> torch.Tensor:
    """The layer in double precision."""
    return (x.double() @ model.weight.double().t()) * model.scale.double()


@pytest.mark.parametrize(("rows", "columns", "tokens"), [(512, 512, 32), (1024, 1024, 1)])
@pytest.mark.parametrize("scaled_first", [False, True])
def test_the_card_holds_eight_bits(rows: int, columns: int, tokens: int, scaled_first: bool) -> None:
    program = compiled(Linear8(rows, columns, scaled_first=scaled_first), inputs(tokens, columns))
    assert wide_stores(program) == []
    sent = sent_bytes(program)
    assert sent["b_weight"] == rows * columns
    assert sent["b_weight"] + sent["b_scale"] <= 0.55 * rows * columns * 2


def test_a_weight_larger_than_the_scratchpads_is_converted_in_a_loop() -> None:
    """As DL16 it would take 128 MiB, twice what the scratchpads of all cores have."""
    program = compiled(Linear8(8192, 8192, scaled_first=False), inputs(1, 8192))
    assert wide_stores(program) == []
    assert "scf.for" in program.mlir("spyre.kernel")


class Mlp8(nn.Module):
    """The part of a Llama layer behind its attention, each weight larger than the scratchpads."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate, self.up = (Linear8(inner, width, scaled_first=True) for _ in range(2))
        self.down = Linear8(width, inner, scaled_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


@pytest.mark.parametrize("tokens", [1, 128])
def test_each_of_several_large_weights_is_in_a_loop_with_its_product(tokens: int) -> None:
    """No loop takes the conversion of a weight and leaves its product outside."""
    with torch.device("meta"), torch.no_grad():
        model = Mlp8(4096, 12800)
        program = compiled(model, torch.empty(tokens, 4096).half())
    assert wide_stores(program) == []
    if tokens == 1:
        assert program.timeline().total_us < 1.1 * program.timeline().roofline_us


def check_program(made: CompiledModel, model: Linear8, x: torch.Tensor, spec: SpyreSpec, directory: Path) -> None:
    """Check that all levels agree, the numbers are those of the model, and the saved bundle is sound."""
    checked = made.verify(x)
    assert checked, str(checked)
    wanted = reference(model, x)
    assert float((made(x).double() - wanted).abs().max() / wanted.abs().max()) < 4e-3
    made.save(directory / "saved")
    assert [f for f in check_path(directory / "saved", make_context(spec)) if f.severity == "error"] == []


def test_pieces_that_no_number_of_cores_divides_well_are_cut_unequally(tmp_path: Path) -> None:
    """44 sticks of rows: 32 on all cores, then the other 12; what a core holds has no room for two of them."""
    small = replace(SPYRE, lx_usable_bytes=24_000)
    model, x = Linear8(44 * 128, 64, scaled_first=True), inputs(4, 64)
    program = import_program(model, (x,))
    levels = lower(program.module, make_context(small))
    loops = [op for op in levels.modules["spyre.kernel"].walk() if isinstance(op, ForOp)]
    assert [list(loop_bounds(op).values) for op in loops] == [[0], [8]]
    converted = [op for op in levels.modules["spyre.kernel"].walk() if isinstance(op, ConvertOp)]
    assert [(op.space.extents["d0"], op.space_splits()["d0"]) for op in converted] == [(4096, 32), (1536, 12)]
    check_program(CompiledModel(program, levels, CompileOptions()), model, x, small, tmp_path)


def test_a_weight_whose_columns_fit_nowhere_is_converted_in_parts_of_the_sum(tmp_path: Path) -> None:
    """A core has one of 32 sticks of columns, half of whose elements at a time fit: two conversions, two products."""
    small = replace(SPYRE, lx_usable_bytes=40_000)
    model, x = Linear8(32 * 128, 256, scaled_first=True), inputs(4, 256)
    program = import_program(model, (x,))
    levels = lower(program.module, make_context(small))
    kernels = [op for op in levels.modules["spyre.kernel"].walk() if isinstance(op, KernelOp)]
    assert [op.function_name for op in kernels] == [*["fp8todl16", "batchmatmul"] * 2, "add", "mul"]
    assert [(op.space_splits(), op.space.extents["k"]) for op in kernels if op.is_product] == [
        ({"m": 1, "n": 32, "k": 1}, 128)
    ] * 2
    assert all(op.tensors[-1].space == "lx" for op in kernels[:-1])
    check_program(CompiledModel(program, levels, CompileOptions()), model, x, small, tmp_path)


class Scaled8(nn.Module):
    """An output layer behind a normalisation, whose rows would take less time in a loop."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = Linear8(1024, 4096, scaled_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(nn.functional.rms_norm(x, (4096,)))


@pytest.mark.parametrize("tokens", [128, 512, 2048])
def test_no_loop_parts_a_product_from_the_conversion_of_its_weight(tokens: int) -> None:
    """The weight fits the scratchpads as DL16: what a loop around the product saves is less than storing it takes."""
    with torch.device("meta"), torch.no_grad():
        program = compiled(Scaled8(), torch.empty(tokens, 4096).half())
    assert wide_stores(program) == []


def test_rows_that_make_a_core_read_again_are_in_blocks_that_share_a_converted_weight(tmp_path: Path) -> None:
    """Of 2,048 rows 16 cores that make the same columns have 128 each; a core that has all rows has 1,024 at a time."""
    model, x = Mlp8(128, 256), inputs(2048, 128)
    program = compiled(model, x)
    module = parse_module(program.mlir("spyre.kernel"), make_context())
    products = [op for op in module.walk() if isinstance(op, KernelOp) and op.is_product]
    assert [(op.space.extents.get("copy", 1), op.space.extents["m"]) for op in products] == [(16, 128)] * 2 + [
        (1, 1024)
    ] * 2
    assert len([op for op in module.walk() if isinstance(op, ConvertOp)]) == 3
    assert wide_stores(program) == []
    checked = program.verify(x)
    assert checked, str(checked)
    gate, up = (reference(linear, x) for linear in (model.gate, model.up))
    wanted = reference(model.down, nn.functional.silu(gate) * up)
    assert float((program(x).double() - wanted).abs().max() / wanted.abs().max()) < 4e-3
    program.save(tmp_path / "saved")
    assert [f for f in check_path(tmp_path / "saved", make_context()) if f.severity == "error"] == []


def test_several_cores_convert_the_same_columns_for_rows_of_their_own(tmp_path: Path) -> None:
    """512 columns are four sticks, so eight cores make each of them, for 64 of 512 rows."""
    model, x = Linear8(512, 256, scaled_first=True), inputs(512, 256)
    program = compiled(model, x)
    module = parse_module(program.mlir("spyre.kernel"), make_context())
    convert, product = [op for op in module.walk() if isinstance(op, KernelOp)][:2]
    assert [op.space_splits()["copy"] for op in (convert, product)] == [8, 8]
    assert device_tensor(product.output).space == device_tensor(convert.output).space == "lx"
    checked = program.verify(x)
    assert checked, str(checked)
    wanted = reference(model, x)
    assert float((program(x).double() - wanted).abs().max() / wanted.abs().max()) < 4e-3
    program.save(tmp_path / "saved")
    assert [f for f in check_path(tmp_path / "saved", make_context()) if f.severity == "error"] == []


def test_copies_of_a_weight_share_out_in_equal_trips_what_all_cores_cannot(tmp_path: Path) -> None:
    """36 sticks of columns: in each of nine trips eight cores make each of four, for 256 of 2,048 rows."""
    small = replace(SPYRE, lx_usable_bytes=20_000)
    model, x = Linear8(36 * 128, 64, scaled_first=False), inputs(2048, 64)
    program = import_program(model, (x,))
    levels = lower(program.module, make_context(small))
    loops = [op for op in levels.modules["spyre.kernel"].walk() if isinstance(op, ForOp)]
    assert [list(loop_bounds(op).values) for op in loops] == [list(range(9))]
    convert, product = [op for op in loops[0].walk() if isinstance(op, KernelOp)][:2]
    assert convert.space_splits() == {"copy": 8, "d0": 4, "d1": 1}
    assert product.space_splits() == {"copy": 8, "m": 1, "n": 4, "k": 1}
    assert device_tensor(convert.output).space == "lx"
    check_program(CompiledModel(program, levels, CompileOptions()), model, x, small, tmp_path)


def test_copies_of_the_last_sticks_alone_keep_all_cores_busy(tmp_path: Path) -> None:
    """68 sticks of columns: two trips with one on each core, then eight cores make each of four, for 8 of 64 rows."""
    small = replace(SPYRE, lx_usable_bytes=80_000)
    model, x = Linear8(68 * 128, 128, scaled_first=False), inputs(64, 128)
    program = import_program(model, (x,))
    levels = lower(program.module, make_context(small))
    loops = [op for op in levels.modules["spyre.kernel"].walk() if isinstance(op, ForOp)]
    found = [[op.space_splits() for op in loop.walk() if isinstance(op, KernelOp)][:2] for loop in loops]
    assert [len(loop_bounds(op).values) for op in loops] == [2, 1]
    assert found == [
        [{"d0": 32, "d1": 1}, {"m": 1, "n": 32, "k": 1}],
        [{"copy": 8, "d0": 4, "d1": 1}, {"copy": 8, "m": 1, "n": 4, "k": 1}],
    ]
    check_program(CompiledModel(program, levels, CompileOptions()), model, x, small, tmp_path)


def test_the_files_hold_its_codes_in_the_published_order(tmp_path: Path) -> None:
    """Lane 16s + 8h + e of a stick has element 64h + 8s + e."""
    model, x = Linear8(128, 64, scaled_first=False), inputs(2, 64)
    program = compiled(model, x)
    program.save(tmp_path / "saved")
    (file,) = (tmp_path / "saved").rglob("weights.safetensors")
    opened: Any = safe_open(file, framework="pt")
    with opened as tensors:
        stored = tensors.get_tensor("weight")
    assert stored.dtype == FP8 and stored.numel() == 128 * 64
    bytes_, wanted = stored.view(torch.uint8).numpy(), model.weight.view(torch.uint8).numpy()
    lanes = [64 * h + 8 * s + e for s in range(8) for h in range(2) for e in range(8)]
    np.testing.assert_array_equal(bytes_, wanted[lanes].T)
    loaded: Any = spyre_mlir.load(tmp_path / "saved")
    assert torch.equal(loaded(x), program(x))


def test_every_code_arrives() -> None:
    """All finite numbers of the format, by a product that picks each."""
    codes = np.arange(256, dtype=np.uint8)
    finite = codes[np.isfinite(codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32))]
    model = Linear8(len(finite), 64, scaled_first=False)
    model.weight[:, 0] = torch.tensor(finite).view(FP8)
    model.scale.fill_(1)
    x = torch.zeros(1, 64).half()
    x[0, 0] = 1
    assert torch.equal(compiled(model, x)(x)[0].float(), model.weight[:, 0].float())


@pytest.mark.slow(reason="a Llama layer of width 1024 takes half a minute; smaller layers run by default")
def test_a_llama_quantized_by_torchao() -> None:
    """Half the bytes of float16 with scales, the error of torchao's own run, and less time than float16."""
    pytest.importorskip("torchao")
    from torchao.quantization import Float8WeightOnlyConfig, quantize_

    model, tokens, linears = llama(1024, 2816, 16, 4)
    usual: Any = spyre_mlir.compile(model, (tokens,))
    quantize_(model, Float8WeightOnlyConfig())
    program: Any = spyre_mlir.compile(model, (tokens,))
    assert wide_stores(program) == []
    sent = sent_bytes(program)
    narrow = sum(n for name, n in sent.items() if "parametrizations" in name)
    assert narrow <= 0.55 * linears
    assert agrees_with(model, program, tokens)
    assert program.timeline().total_us < 0.75 * usual.timeline().total_us
