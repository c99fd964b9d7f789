"""A Llama layer in the schemes of torchao: bytes of its weights, predicted time, wide stores, and errors.

`python benchmarks/quantized.py [--scheme NAME …] [--width N] [--tokens N] [--run]`. torchao comes with the extra
`clients`. Heads have 64 channels and share a fourth as many; an output layer has 1024 words. *bundle* and *card* are
bytes of the linear layers' weights, with their scales, over those of float16. *by* is the calibrated prediction over
the time of all bytes and arithmetic. *wide* counts kernels that store part of a weight in device memory in more bits.
With `--run` the layer runs: errors are the largest relative to the largest logit, *ours* and *torch* against the
unquantized layer in double precision.
"""

from __future__ import annotations

import argparse
import copy
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

import spyre_mlir
from spyre_mlir.dialects.spyre.kernel import KernelOp, ToDeviceOp, device_tensor
from spyre_mlir.dialects.spyre.kernel_loop import buffer_behind
from spyre_mlir.hw.formats import FP8, INT32
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

INNER = {1024: 2816, 2048: 5632, 4096: 12800}
HALF = 2


def _configurations() -> dict[str, Callable[[], Any] | None]:
    from torchao.quantization import (
        Float8WeightOnlyConfig,
        Int8DynamicActivationInt8WeightConfig,
        Int8WeightOnlyConfig,
        IntxWeightOnlyConfig,
    )
    from torchao.quantization.granularity import PerGroup

    return {
        "float16": None,
        "float8": Float8WeightOnlyConfig,
        "int8": Int8WeightOnlyConfig,
        "int4": lambda: IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)),
        "w8a8": Int8DynamicActivationInt8WeightConfig,
    }


def layer(width: int) -> LlamaForCausalLM:
    torch.manual_seed(0)
    heads = width // 64
    config = LlamaConfig(
        hidden_size=width,
        intermediate_size=INNER[width],
        num_hidden_layers=1,
        num_attention_heads=heads,
        num_key_value_heads=heads // 4,
        vocab_size=1024,
        use_cache=False,
    )
    return LlamaForCausalLM(config).half().eval()


def card_bytes(module: ModuleOp) -> int:
    """Bytes on the card of what belongs to linear layers."""
    sent = [op for op in module.walk() if isinstance(op, ToDeviceOp)]
    named = [op for op in sent if any(part in str(op.source.name_hint) for part in ("proj", "lm_head"))]
    return sum(device_tensor(op.result).sticks * 128 for op in named)


def wide_stores(module: ModuleOp) -> int:
    """Kernels that store what elementwise kernels made of a narrow weight, in device memory."""
    ops = list(module.walk())
    narrow = {FP8.name, INT32.name}
    widened: set[SSAValue] = {
        op.result for op in ops if isinstance(op, ToDeviceOp) and device_tensor(op.result).format in narrow
    }
    found = 0
    for op in ops:
        if not isinstance(op, KernelOp) or op.is_product or not any(buffer_behind(v) in widened for v in op.inputs):
            continue
        widened.add(buffer_behind(op.output))
        found += device_tensor(op.output).space != "lx"
    return found


def bundle_bytes(program: Any, model: LlamaForCausalLM) -> int:
    """Bytes of the files of a bundle that hold weights, without the table of words."""
    with tempfile.TemporaryDirectory() as folder:
        program.save(Path(folder) / "saved", host_weights=False)
        held = sum(file.stat().st_size for file in Path(folder).rglob("*.safetensors"))
    table: Any = model.get_input_embeddings().weight
    return held - HALF * table.numel()


def row(scheme: str, config: Callable[[], Any] | None, width: int, tokens: int, *, run: bool) -> str:
    from torchao.quantization import quantize_

    model = layer(width)
    exact, count = copy.deepcopy(model), sum(m.weight.numel() for m in model.modules() if isinstance(m, nn.Linear))
    if config is not None:
        quantize_(model, config())
    words = torch.randint(0, 1024, (1, tokens))
    program: Any = spyre_mlir.compile(model, (words,), cache=False)
    module, timeline = parse_module(program.mlir("spyre.kernel"), make_context()), program.timeline()
    shares = [of / count / HALF for of in (bundle_bytes(program, model), card_bytes(module))]
    by = timeline.total_us / timeline.roofline_us
    text = f"{scheme:8}{width:6}{tokens:7}{shares[0]:8.3f}{shares[1]:8.3f}{timeline.total_us:11,.1f}{by:7.2f}"
    text += f"{wide_stores(module):6}"
    return text + (_errors(program, model, exact, words) if run else "")


def _errors(program: Any, model: nn.Module, exact: nn.Module, words: Tensor) -> str:
    with torch.no_grad():
        wanted, theirs = exact.double()(words).logits, model(words).logits.double()
    ours, most = program(words).logits.double(), wanted.abs().max()
    pairs = ((ours, wanted), (theirs, wanted), (ours, theirs))
    return "".join(f"{float((a - b).abs().max() / most):9.4f}" for a, b in pairs)


def main() -> None:
    known = _configurations()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheme", choices=[*known], nargs="*", default=[*known])
    parser.add_argument("--width", type=int, choices=[*INNER], default=1024)
    parser.add_argument("--tokens", type=int, default=1)
    parser.add_argument("--run", action="store_true")
    args = parser.parse_args()
    print("scheme   width tokens  bundle    card         us     by  wide" + "     ours    torch  between" * args.run)
    for scheme in args.scheme:
        print(row(scheme, known[scheme], args.width, args.tokens, run=args.run), flush=True)


if __name__ == "__main__":
    main()
