"""diffusers: denoisers and autoencoders of different kinds; the step is an input of the denoisers."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.clients.catalogue.entry import entries
from tests.models.entry import Built, Picked

HEADS: dict[str, Any] = {"num_layers": 1, "num_attention_heads": 2, "attention_head_dim": 8}
LATENT = (2, 4, 8, 8)
NAMES = ("hidden_states", "encoder_hidden_states", "timestep")


def _step() -> torch.Tensor:
    return torch.tensor([7, 500])


def _picked(model: nn.Module, *names: str, **fixed: Any) -> nn.Module:
    return Picked(model, names, "sample", **fixed)


def unet_2d() -> Built:
    from diffusers import UNet2DModel

    blocks = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    sizes = {"block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4, "attention_head_dim": 8}
    return _picked(UNet2DModel(8, 4, 4, **blocks, **sizes), "sample", "timestep"), (torch.randn(LATENT), _step())


def unet_2d_condition() -> Built:
    """The kind of Stable Diffusion's."""
    from diffusers import UNet2DConditionModel

    down, up = ("CrossAttnDownBlock2D", "DownBlock2D"), ("UpBlock2D", "CrossAttnUpBlock2D")
    sizes = {"block_out_channels": (8, 16), "layers_per_block": 1, "norm_num_groups": 4, "attention_head_dim": 8}
    model = UNet2DConditionModel(8, down_block_types=down, up_block_types=up, cross_attention_dim=16, **sizes)
    words = torch.randn(2, 6, 16)
    return _picked(model, "sample", "timestep", "encoder_hidden_states"), (torch.randn(LATENT), _step(), words)


def unet_1d() -> Built:
    from diffusers import UNet1DModel

    model = UNet1DModel(32, extra_in_channels=64)
    return _picked(model, "sample", "timestep"), (torch.randn(2, 2, 32), _step())


def autoencoder_tiny() -> Built:
    from diffusers import AutoencoderTiny

    widths = {"encoder_block_out_channels": (8, 8), "decoder_block_out_channels": (8, 8)}
    counts = {"num_encoder_blocks": (1, 1), "num_decoder_blocks": (1, 1)}
    return _picked(AutoencoderTiny(**widths, **counts), "sample"), (torch.randn(1, 3, 16, 16),)


def vq_model() -> Built:
    from diffusers import VQModel

    model = VQModel(block_out_channels=(8,), norm_num_groups=4, num_vq_embeddings=16)
    return _picked(model, "sample"), (torch.randn(1, 3, 8, 8),)


def dit() -> Built:
    from diffusers import DiTTransformer2DModel

    model = DiTTransformer2DModel(**{**HEADS, "sample_size": 8, "norm_num_groups": 4}, num_embeds_ada_norm=10)
    names = ("hidden_states", "timestep", "class_labels")
    return _picked(model, *names), (torch.randn(LATENT), _step(), torch.tensor([1, 3]))


def pixart() -> Built:
    from diffusers import PixArtTransformer2DModel

    sizes = {**HEADS, "sample_size": 8, "cross_attention_dim": 16, "caption_channels": 12, "norm_num_groups": 4}
    model = PixArtTransformer2DModel(**sizes, out_channels=8, use_additional_conditions=False)
    fixed = {"added_cond_kwargs": {"resolution": None, "aspect_ratio": None}}
    return _picked(model, *NAMES, **fixed), (torch.randn(LATENT), torch.randn(2, 6, 12), _step())


def sd3() -> Built:
    """The transformer of Stable Diffusion 3."""
    from diffusers import SD3Transformer2DModel

    sizes = {"sample_size": 8, "in_channels": 4, "out_channels": 4, "joint_attention_dim": 12, "pos_embed_max_size": 8}
    model = SD3Transformer2DModel(
        **{**HEADS, "num_layers": 2}, **sizes, caption_projection_dim=16, pooled_projection_dim=12
    )
    names = ("hidden_states", "encoder_hidden_states", "pooled_projections", "timestep")
    return _picked(model, *names), (torch.randn(LATENT), torch.randn(2, 6, 12), torch.randn(2, 12), _step())


def flux() -> Built:
    from diffusers import FluxTransformer2DModel

    sizes = {"in_channels": 4, "num_single_layers": 1, "joint_attention_dim": 12, "pooled_projection_dim": 12}
    model = FluxTransformer2DModel(**HEADS, **sizes, axes_dims_rope=(2, 2, 4))
    names = ("hidden_states", "encoder_hidden_states", "pooled_projections", "timestep", "img_ids", "txt_ids")
    states = (torch.randn(2, 16, 4), torch.randn(2, 6, 12), torch.randn(2, 12), torch.rand(2))
    places = torch.cartesian_prod(torch.zeros(1), torch.arange(4.0), torch.arange(4.0))
    return _picked(model, *names), (*states, places, torch.zeros(6, 3))


def prior() -> Built:
    from diffusers import PriorTransformer

    model = PriorTransformer(**HEADS, embedding_dim=16, num_embeddings=6, additional_embeddings=4)
    names = ("hidden_states", "timestep", "proj_embedding", "encoder_hidden_states")
    states = (torch.randn(2, 16), _step(), torch.randn(2, 16), torch.randn(2, 6, 16))
    return Picked(model, names, "predicted_image_embedding"), states


def sana() -> Built:
    """Linear attention, and convolutions between."""
    from diffusers import SanaTransformer2DModel

    cross = {"num_cross_attention_heads": 2, "cross_attention_head_dim": 8, "cross_attention_dim": 16}
    sizes = {"in_channels": 4, "out_channels": 4, "caption_channels": 12, "sample_size": 8}
    model = SanaTransformer2DModel(**HEADS, **cross, **sizes)
    return _picked(model, *NAMES), (torch.randn(LATENT), torch.randn(2, 6, 12), _step())


def wan() -> Built:
    """Of videos: convolutions over patches in three dimensions."""
    from diffusers import WanTransformer3DModel

    sizes = {"in_channels": 4, "out_channels": 4, "text_dim": 12, "freq_dim": 16, "ffn_dim": 32, "rope_max_seq_len": 16}
    model = WanTransformer3DModel(**{**HEADS, "attention_head_dim": 12}, **sizes, cross_attn_norm=True)
    return _picked(model, *NAMES), (torch.randn(1, 4, 2, 4, 4), torch.randn(1, 6, 12), torch.tensor([7]))


DIFFUSERS = entries(
    "diffusers",
    unet_2d,
    unet_2d_condition,
    unet_1d,
    autoencoder_tiny,
    vq_model,
    dit,
    pixart,
    sd3,
    flux,
    prior,
    sana,
    wan,
)
