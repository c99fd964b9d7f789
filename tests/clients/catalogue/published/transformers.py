"""transformers: the widths of published checkpoints, with fewer layers, and fewer words where there are many."""

from __future__ import annotations

from typing import Any

import torch

from tests.clients.catalogue.entry import Entry, published
from tests.models.entry import Built, Picked, image, token_ids

WORDS = 1024
LAYER = "1 layer"
FEW_WORDS = f"1 layer, {WORDS} words"
HIDDEN = "last_hidden_state"


def _made(model: str, config: str, sizes: dict[str, Any]) -> Any:
    import transformers

    return getattr(transformers, model)(getattr(transformers, config)(**sizes))


def _encoder(model: str, config: str, **sizes: Any) -> Built:
    return Picked(_made(model, config, sizes), ("input_ids",), HIDDEN), (token_ids(1, 32),)


def _decoder(model: str, config: str, **sizes: Any) -> Built:
    return Picked(_made(model, config, sizes), ("input_ids",), "logits", use_cache=False), (token_ids(1, 32),)


def _pictures(model: str, config: str, pixels: int, field: str = HIDDEN, **sizes: Any) -> Built:
    return Picked(_made(model, config, sizes), ("pixel_values",), field), (image(pixels, images=1),)


def bert_base() -> Built:
    return _encoder("BertModel", "BertConfig", num_hidden_layers=1)


def modernbert_base() -> Built:
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}
    return _encoder("ModernBertModel", "ModernBertConfig", num_hidden_layers=2, vocab_size=WORDS, **special)


def gpt2() -> Built:
    return _decoder("GPT2LMHeadModel", "GPT2Config", n_layer=1)


def t5_small() -> Built:
    sizes = {"num_layers": 1, "num_decoder_layers": 1, "vocab_size": WORDS}
    model = _made("T5ForConditionalGeneration", "T5Config", {**sizes, "decoder_start_token_id": 0})
    names = ("input_ids", "decoder_input_ids")
    return Picked(model, names, "logits", use_cache=False), (token_ids(1, 32), token_ids(1, 8))


def llama_3_2_1b() -> Built:
    sizes = {"hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8}
    more = {"num_hidden_layers": 1, "head_dim": 64, "tie_word_embeddings": True, "vocab_size": WORDS}
    return _decoder("LlamaForCausalLM", "LlamaConfig", **sizes, **more)


def qwen3_0_6b() -> Built:
    sizes = {"hidden_size": 1024, "intermediate_size": 3072, "num_attention_heads": 16, "num_key_value_heads": 8}
    more = {"num_hidden_layers": 1, "head_dim": 128, "tie_word_embeddings": True, "vocab_size": WORDS}
    return _decoder("Qwen3ForCausalLM", "Qwen3Config", **sizes, **more)


def gemma_3_270m() -> Built:
    sizes = {"hidden_size": 640, "intermediate_size": 2048, "num_attention_heads": 4, "num_key_value_heads": 1}
    more = {"num_hidden_layers": 2, "head_dim": 256, "sliding_window": 16, "vocab_size": WORDS}
    kinds = ["sliding_attention", "full_attention"]
    return _decoder("Gemma3ForCausalLM", "Gemma3TextConfig", **sizes, **more, layer_types=kinds)


def granite_3_2b() -> Built:
    sizes = {"hidden_size": 2048, "intermediate_size": 8192, "num_attention_heads": 32, "num_key_value_heads": 8}
    scales = {"embedding_multiplier": 12.0, "logits_scaling": 8.0, "residual_multiplier": 0.22}
    more = {"num_hidden_layers": 1, "attention_multiplier": 0.015625, "vocab_size": WORDS}
    return _decoder("GraniteForCausalLM", "GraniteConfig", **sizes, **scales, **more)


def mamba_130m() -> Built:
    sizes = {"hidden_size": 768, "state_size": 16, "num_hidden_layers": 1, "vocab_size": WORDS}
    return _decoder("MambaForCausalLM", "MambaConfig", **sizes)


def whisper_tiny() -> Built:
    halves = {
        "d_model": 384,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "encoder_ffn_dim": 1536,
        "decoder_ffn_dim": 1536,
    }
    heads = {"encoder_attention_heads": 6, "decoder_attention_heads": 6, "max_source_positions": 50}
    model = _made("WhisperForConditionalGeneration", "WhisperConfig", {**halves, **heads})
    names = ("input_features", "decoder_input_ids")
    return Picked(model, names, "logits", use_cache=False), (torch.randn(1, 80, 100), token_ids(1, 8))


def wav2vec2_base() -> Built:
    model = _made("Wav2Vec2Model", "Wav2Vec2Config", {"num_hidden_layers": 1})
    return Picked(model, ("input_values",), HIDDEN), (torch.randn(1, 1600),)


def vit_base_patch16_224() -> Built:
    return _pictures("ViTModel", "ViTConfig", 224, num_hidden_layers=1)


def dinov2_small() -> Built:
    sizes = {"hidden_size": 384, "num_attention_heads": 6, "num_hidden_layers": 1, "image_size": 224}
    return _pictures("Dinov2Model", "Dinov2Config", 224, **sizes)


def efficientnet_b0() -> Built:
    sizes = {"width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280, "image_size": 64}
    return _pictures("EfficientNetModel", "EfficientNetConfig", 64, **sizes)


def segformer_b0() -> Built:
    sizes = {"depths": [1, 1, 1, 1], "num_labels": 150}
    return _pictures("SegformerForSemanticSegmentation", "SegformerConfig", 64, "logits", **sizes)


TRANSFORMERS: dict[str, Entry] = published(
    "transformers",
    {
        "bert_base": (LAYER, bert_base),
        "modernbert_base": (f"2 layers, {WORDS} words", modernbert_base),
        "gpt2": (LAYER, gpt2),
        "t5_small": (f"{FEW_WORDS} in each half", t5_small),
        "llama_3.2_1b": (FEW_WORDS, llama_3_2_1b),
        "qwen3_0.6b": (FEW_WORDS, qwen3_0_6b),
        "gemma_3_270m": (f"2 layers, {WORDS} words, a window of 16", gemma_3_270m),
        "granite_3.3_2b": (FEW_WORDS, granite_3_2b),
        "mamba_130m": (FEW_WORDS, mamba_130m),
        "whisper_tiny": ("1 layer in each half, 1 second", whisper_tiny),
        "wav2vec2_base": ("1 layer, 0.1 seconds", wav2vec2_base),
        "vit_base_patch16_224": (LAYER, vit_base_patch16_224),
        "dinov2_small": (f"{LAYER}, 224 x 224 pixels", dinov2_small),
        "efficientnet_b0": ("64 x 64 pixels", efficientnet_b0),
        "segformer_b0": ("64 x 64 pixels, 1 layer a stage", segformer_b0),
    },
)
