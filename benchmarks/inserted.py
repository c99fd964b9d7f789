"""How much of the predicted time of models the compiler spends on kernels that only rearrange data.

`python benchmarks/inserted.py [--only TEXT]`. Models have the widths of their published configurations, float16, and
weights on the meta device. Nothing is measured on a card. *inserted* is the part of the time in copies, relayouts and
conversions of types, without embeddings, which the models ask for; *longest* are the modules that spend most on them.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    AutoModel,
    BertConfig,
    MixtralConfig,
    PreTrainedConfig,
    ResNetConfig,
    T5Config,
    ViTConfig,
    WhisperConfig,
)

from spyre_mlir.frontend import import_program
from spyre_mlir.hw.cost import CostKind
from spyre_mlir.machine.bundle.timeline import TimedKernel
from spyre_mlir.pipeline import lower
from spyre_mlir.report.shares import moves
from spyre_mlir.report.timing import module_timeline
from spyre_mlir.universe import make_context

HALF = torch.float16


class Block(nn.Module):
    """A residual block of a diffusion model: two normalised convolutions, the step of time added between them."""

    def __init__(self, channels: int, made: int, embedded: int) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(32, channels), nn.SiLU(), nn.Conv2d(channels, made, 3, padding=1))
        self.time = nn.Linear(embedded, made)
        self.second = nn.Sequential(nn.GroupNorm(32, made), nn.SiLU(), nn.Conv2d(made, made, 3, padding=1))
        self.skip = nn.Conv2d(channels, made, 1) if channels != made else nn.Identity()

    def forward(self, x: Tensor, step: Tensor) -> Tensor:
        """Returns [1, made, height, width]."""
        hidden = self.first(x) + self.time(step)[:, :, None, None]
        return self.skip(x) + self.second(hidden)


class Unet(nn.Module):
    """Two resolutions of a latent diffusion model of 64 x 64, with Stable Diffusion's 320 and 640 channels."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Conv2d(4, 320, 3, padding=1)
        self.wide = Block(320, 320, 1280)
        self.down = nn.Conv2d(320, 320, 3, stride=2, padding=1)
        self.deep = Block(320, 640, 1280)
        self.attention = nn.MultiheadAttention(640, 8, batch_first=True)
        self.up = nn.Sequential(nn.Upsample(scale_factor=2.0), nn.Conv2d(640, 320, 3, padding=1))
        self.joined = Block(640, 320, 1280)
        self.leave = nn.Conv2d(320, 4, 3, padding=1)

    def forward(self, x: Tensor, step: Tensor) -> Tensor:
        """Takes [1, 4, 64, 64] and the embedding of a step, [1, 1280]."""
        wide = self.wide(self.enter(x), step)
        deep = self.deep(self.down(wide), step)
        rows = deep.flatten(2).transpose(1, 2)
        deep = deep + self.attention(rows, rows, rows, need_weights=False)[0].transpose(1, 2).reshape(deep.shape)
        return self.leave(self.joined(torch.cat([self.up(deep), wide], 1), step))


def _of(config: PreTrainedConfig) -> nn.Module:
    if not isinstance(config, ResNetConfig):
        config._attn_implementation = "sdpa"
    return AutoModel.from_config(config)


def _tokens(count: int) -> Tensor:
    return torch.zeros(1, count, dtype=torch.int64)


def _half(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=HALF)


# Published widths and depths, but for one layer of Mixtral.
MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], dict[str, Any]]]] = {
    "vit base, 224 x 224": (
        lambda: _of(ViTConfig(num_hidden_layers=12)),
        lambda: {"pixel_values": _half(1, 3, 224, 224)},
    ),
    "bert base, 512 tokens": (
        lambda: _of(BertConfig(num_hidden_layers=12)),
        lambda: {"input_ids": _tokens(512)},
    ),
    "t5 base, 512 and 128 tokens": (
        lambda: _of(T5Config(d_model=768, d_ff=3072, num_heads=12, num_layers=12, use_cache=False)),
        lambda: {"input_ids": _tokens(512), "decoder_input_ids": _tokens(128)},
    ),
    "whisper small, 3000 frames": (
        lambda: _of(
            WhisperConfig(
                d_model=768,
                encoder_layers=12,
                decoder_layers=12,
                encoder_attention_heads=12,
                decoder_attention_heads=12,
                encoder_ffn_dim=3072,
                decoder_ffn_dim=3072,
                use_cache=False,
            )
        ),
        lambda: {"input_features": _half(1, 80, 3000), "decoder_input_ids": _tokens(128)},
    ),
    "mixtral 8 x 7b, 512 tokens": (
        lambda: _of(MixtralConfig(num_hidden_layers=1, use_cache=False)),
        lambda: {"input_ids": _tokens(512)},
    ),
    "resnet 18, 224 x 224": (
        lambda: _of(ResNetConfig(layer_type="basic", hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2])),
        lambda: {"pixel_values": _half(1, 3, 224, 224)},
    ),
    "diffusion unet, 64 x 64": (Unet, lambda: {"x": _half(1, 4, 64, 64), "step": _half(1, 1280)}),
}


def inserted(kernel: TimedKernel) -> bool:
    """Whether the compiler needs a kernel, and not the model."""
    return moves(kernel) and kernel.work.kind is not CostKind.GATHER


def row(name: str) -> str:
    """Lowers a model; returns its row of the table."""
    build, inputs = MODELS[name]
    with torch.device("meta"):
        model, given = build().to(HALF).eval(), inputs()
    program = import_program(model, (), given)
    started = time.process_time()
    modules = lower(program.module, make_context()).modules
    seconds = time.process_time() - started
    timeline = module_timeline(modules["superdsc"], "calibrated")
    by_module = Counter[str]()
    for kernel in timeline.kernels:
        if inserted(kernel):
            by_module[kernel.launch.module] += kernel.cost.total
    longest = ", ".join(f"{m or 'the model'} {us:.0f} us" for m, us in by_module.most_common(2))
    part = f"{by_module.total() / timeline.total_us:8.0%}"
    return f"{name:28} {timeline.total_us:10.1f} {part} {len(timeline.kernels):8} {seconds:6.1f}  {longest}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="models whose name contains this")
    only = parser.parse_args().only
    print(f"{'model':28} {'us':>10} inserted {'kernels':>8} {'CPU s':>6}  longest")
    for name in MODELS:
        if only in name:
            print(row(name), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
