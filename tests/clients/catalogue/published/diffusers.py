"""diffusers: the widths of published checkpoints, with one layer where there are more, and small latents."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.clients.catalogue.entry import Entry, published
from tests.models.entry import Built, Picked

NAMES = ("hidden_states", "encoder_hidden_states", "timestep")


def _step() -> torch.Tensor:
    return torch.tensor([500])


def _picked(model: nn.Module, *names: str, **fixed: Any) -> nn.Module:
    return Picked(model, names, "sample", **fixed)


def ddpm_cifar10_32() -> Built:
    from diffusers import UNet2DModel

    down, up = ("DownBlock2D", "AttnDownBlock2D"), ("AttnUpBlock2D", "UpBlock2D")
    sizes = {"block_out_channels": (128, 256), "layers_per_block": 1, "attention_head_dim": None}
    model = UNet2DModel(16, 3, 3, down_block_types=down, up_block_types=up, **sizes)
    return _picked(model, "sample", "timestep"), (torch.randn(1, 3, 16, 16), _step())


def stable_diffusion_1_5() -> Built:
    from diffusers import UNet2DConditionModel

    down, up = ("CrossAttnDownBlock2D", "CrossAttnDownBlock2D"), ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D")
    sizes = {"block_out_channels": (320, 640), "layers_per_block": 1, "attention_head_dim": 8}
    model = UNet2DConditionModel(8, down_block_types=down, up_block_types=up, cross_attention_dim=768, **sizes)
    states = (torch.randn(1, 4, 8, 8), _step(), torch.randn(1, 16, 768))
    return _picked(model, "sample", "timestep", "encoder_hidden_states"), states


def autoencoder_kl() -> Built:
    from diffusers import AutoencoderKL

    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 4, "up_block_types": ("UpDecoderBlock2D",) * 4}
    model = AutoencoderKL(**blocks, block_out_channels=(128, 256, 512, 512), layers_per_block=1, sample_size=32)
    return _picked(model, "sample"), (torch.randn(1, 3, 32, 32),)


def taesd() -> Built:
    from diffusers import AutoencoderTiny

    return _picked(AutoencoderTiny(), "sample"), (torch.randn(1, 3, 32, 32),)


def vq_celebahq_256() -> Built:
    from diffusers import VQModel

    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 3, "up_block_types": ("UpDecoderBlock2D",) * 3}
    model = VQModel(**blocks, block_out_channels=(128, 256, 512), num_vq_embeddings=1024)
    return _picked(model, "sample"), (torch.randn(1, 3, 32, 32),)


def dit_xl_2() -> Built:
    from diffusers import DiTTransformer2DModel

    model = DiTTransformer2DModel(16, 72, 4, 8, num_layers=1, sample_size=16)
    names = ("hidden_states", "timestep", "class_labels")
    return _picked(model, *names), (torch.randn(1, 4, 16, 16), _step(), torch.tensor([3]))


def pixart_alpha() -> Built:
    from diffusers import PixArtTransformer2DModel

    model = PixArtTransformer2DModel(
        num_layers=1, sample_size=16, caption_channels=4096, use_additional_conditions=False
    )
    fixed = {"added_cond_kwargs": {"resolution": None, "aspect_ratio": None}}
    return _picked(model, *NAMES, **fixed), (torch.randn(1, 4, 16, 16), torch.randn(1, 16, 4096), _step())


def stable_diffusion_3() -> Built:
    from diffusers import SD3Transformer2DModel

    heads = {"num_attention_heads": 24, "attention_head_dim": 64, "caption_projection_dim": 1536}
    model = SD3Transformer2DModel(16, num_layers=1, joint_attention_dim=4096, **heads)
    names = ("hidden_states", "encoder_hidden_states", "pooled_projections", "timestep")
    return _picked(model, *names), (torch.randn(1, 16, 16, 16), torch.randn(1, 16, 4096), torch.randn(1, 2048), _step())


def kandinsky_prior() -> Built:
    from diffusers import PriorTransformer

    names = ("hidden_states", "timestep", "proj_embedding", "encoder_hidden_states")
    states = (torch.randn(1, 768), _step(), torch.randn(1, 768), torch.randn(1, 77, 768))
    return Picked(PriorTransformer(num_layers=1), names, "predicted_image_embedding"), states


def sana_600m() -> Built:
    from diffusers import SanaTransformer2DModel

    heads = {"num_attention_heads": 36, "attention_head_dim": 32, "num_cross_attention_heads": 16}
    widths = {"cross_attention_head_dim": 72, "cross_attention_dim": 1152, "caption_channels": 2304}
    model = SanaTransformer2DModel(num_layers=1, sample_size=8, **heads, **widths)
    return _picked(model, *NAMES), (torch.randn(1, 32, 8, 8), torch.randn(1, 16, 2304), _step())


def wan_2_1_1_3b() -> Built:
    from diffusers import WanTransformer3DModel

    model = WanTransformer3DModel(num_attention_heads=12, attention_head_dim=128, ffn_dim=8960, num_layers=1)
    return _picked(model, *NAMES), (torch.randn(1, 16, 1, 8, 8), torch.randn(1, 16, 4096), _step())


def ltx_video() -> Built:
    from diffusers import LTXVideoTransformer3DModel

    names = (*NAMES, "encoder_attention_mask")
    states = (torch.randn(1, 32, 128), torch.randn(1, 16, 4096), _step(), torch.ones(1, 16))
    return _picked(LTXVideoTransformer3DModel(num_layers=1), *names, num_frames=2, height=4, width=4), states


DIFFUSERS: dict[str, Entry] = published(
    "diffusers",
    {
        "ddpm_cifar10_32": ("2 of 4 levels, 1 layer each, 16 x 16", ddpm_cifar10_32),
        "stable_diffusion_1.5": ("2 of 4 levels, 1 layer each, 8 x 8", stable_diffusion_1_5),
        "autoencoder_kl": ("1 layer a level, 32 x 32 pixels", autoencoder_kl),
        "taesd": ("32 x 32 pixels", taesd),
        "vq_celebahq_256": ("1 layer a level, 1024 codes, 32 x 32 pixels", vq_celebahq_256),
        "dit_xl_2": ("1 of 28 layers, 16 x 16", dit_xl_2),
        "pixart_alpha": ("1 of 28 layers, 16 x 16", pixart_alpha),
        "stable_diffusion_3": ("1 of 24 layers, 16 x 16", stable_diffusion_3),
        "kandinsky_prior": ("1 of 20 layers", kandinsky_prior),
        "sana_600m": ("1 of 28 layers, 8 x 8", sana_600m),
        "wan_2.1_1.3b": ("1 of 30 layers, 1 frame of 8 x 8", wan_2_1_1_3b),
        "ltx_video": ("1 of 28 layers, 32 patches", ltx_video),
    },
)
