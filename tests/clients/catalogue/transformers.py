"""transformers: kinds of models that the zoo of `tests/models` lacks."""

from __future__ import annotations

from typing import Any

import torch

from tests.clients.catalogue.entry import entries
from tests.models.entry import DECODER, ENCODER, PIXELS, VOCABULARY, Built, Picked, image, token_ids

HIDDEN = "last_hidden_state"
PATCHES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": PIXELS,
    "patch_size": 8,
}


def _words(model: str, config: str, **sizes: Any) -> Built:
    import transformers

    made = getattr(transformers, model)(getattr(transformers, config)(**sizes))
    mask = torch.ones(2, 16, dtype=torch.long)
    return Picked(made, ("input_ids", "attention_mask"), HIDDEN), (token_ids(), mask)


def _text(model: str, config: str, **sizes: Any) -> Built:
    import transformers

    made = getattr(transformers, model)(getattr(transformers, config)(**sizes))
    return Picked(made, ("input_ids",), "logits", use_cache=False), (token_ids(),)


def _pictures(model: str, config: str, field: str = HIDDEN, **sizes: Any) -> Built:
    import transformers

    made = getattr(transformers, model)(getattr(transformers, config)(**sizes))
    return Picked(made, ("pixel_values",), field), (image(),)


def albert() -> Built:
    return _words("AlbertModel", "AlbertConfig", **ENCODER, embedding_size=16)


def electra() -> Built:
    return _words("ElectraModel", "ElectraConfig", **ENCODER, embedding_size=16)


def deberta_v2() -> Built:
    relative = {"relative_attention": True, "position_buckets": 8, "pos_att_type": ["p2c", "c2p"]}
    return _words("DebertaV2Model", "DebertaV2Config", **ENCODER, **relative)


def modernbert() -> Built:
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
    sizes = {**ENCODER, "local_attention": 8, "global_attn_every_n_layers": 2}
    return _words("ModernBertModel", "ModernBertConfig", **sizes, **special)


def mpnet() -> Built:
    return _words("MPNetModel", "MPNetConfig", **ENCODER)


def qwen3() -> Built:
    return _text("Qwen3ForCausalLM", "Qwen3Config", **DECODER, head_dim=8)


def gemma3() -> Built:
    sizes = {**DECODER, "head_dim": 8, "sliding_window": 8, "query_pre_attn_scalar": 8}
    return _text("Gemma3ForCausalLM", "Gemma3TextConfig", **sizes, layer_types=["sliding_attention", "full_attention"])


def gpt_neox() -> Built:
    return _text("GPTNeoXForCausalLM", "GPTNeoXConfig", **ENCODER)


def falcon() -> Built:
    sizes = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    return _text("FalconForCausalLM", "FalconConfig", **sizes)


def deepseek_v3() -> Built:
    experts = {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 2, "topk_group": 1, "n_shared_experts": 1}
    heads = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 8}
    sizes = {**ENCODER, "num_key_value_heads": 4, "moe_intermediate_size": 32, "first_k_dense_replace": 1}
    return _text("DeepseekV3ForCausalLM", "DeepseekV3Config", **sizes, **experts, **heads)


def mamba2() -> Built:
    sizes = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 16, "expand": 2}
    return _text("Mamba2ForCausalLM", "Mamba2Config", **sizes, num_heads=8, head_dim=8, n_groups=2, chunk_size=8)


def whisper() -> Built:
    """Both halves of it."""
    import transformers

    halves = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    sizes = {"num_mel_bins": 16, "max_source_positions": 20, "max_target_positions": 32, "vocab_size": VOCABULARY}
    config = transformers.WhisperConfig(**halves, **heads, **special, **sizes)
    model = transformers.WhisperForConditionalGeneration(config)
    names = ("input_features", "decoder_input_ids")
    return Picked(model, names, "logits", use_cache=False), (torch.randn(2, 16, 40), token_ids(tokens=8))


def marian() -> Built:
    import transformers

    halves = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 64}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
    special = {"pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 1}
    model = transformers.MarianMTModel(transformers.MarianConfig(**halves, **heads, **special, vocab_size=VOCABULARY))
    names = ("input_ids", "decoder_input_ids")
    return Picked(model, names, "logits", use_cache=False), (token_ids(), token_ids(tokens=8))


def dinov2() -> Built:
    return _pictures("Dinov2Model", "Dinov2Config", **PATCHES, mlp_ratio=2)


def siglip_vision() -> Built:
    return _pictures("SiglipVisionModel", "SiglipVisionConfig", **PATCHES)


def segformer() -> Built:
    sizes = {"hidden_sizes": [8, 16], "depths": [1, 1], "num_encoder_blocks": 2, "num_attention_heads": [1, 2]}
    steps = {"sr_ratios": [4, 2], "patch_sizes": [7, 3], "strides": [4, 2], "mlp_ratios": [2, 2]}
    model, config = "SegformerForSemanticSegmentation", "SegformerConfig"
    return _pictures(model, config, "logits", **sizes, **steps, decoder_hidden_size=16, num_labels=5)


def mobilevit() -> Built:
    sizes = {"hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 16, 16, 24, 32, 32], "image_size": PIXELS}
    return _pictures("MobileViTModel", "MobileViTConfig", **sizes, num_attention_heads=2)


def patchtst() -> Built:
    """A forecast of series, by patches."""
    import transformers

    sizes = {
        "num_input_channels": 2,
        "context_length": 32,
        "patch_length": 8,
        "patch_stride": 8,
        "prediction_length": 4,
    }
    layers = {"d_model": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 64}
    config = transformers.PatchTSTConfig(**sizes, **layers, loss="mse")
    model = transformers.PatchTSTForPrediction(config)
    return Picked(model, ("past_values",), "prediction_outputs"), (torch.randn(2, 32, 2),)


TRANSFORMERS = entries(
    "transformers",
    albert,
    electra,
    deberta_v2,
    modernbert,
    mpnet,
    qwen3,
    gemma3,
    gpt_neox,
    falcon,
    deepseek_v3,
    mamba2,
    whisper,
    marian,
    dinov2,
    siglip_vision,
    segformer,
    mobilevit,
    patchtst,
)
