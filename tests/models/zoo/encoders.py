"""Encoders of text, speech and pictures, and encoders with decoders: shrunken, nothing is downloaded."""

from __future__ import annotations

import torch
import transformers
from torch import nn

from tests.models.entry import (
    ENCODER,
    PIXELS,
    SENTENCES,
    TOKENS,
    VOCABULARY,
    Built,
    Picked,
    entries,
    image,
    token_ids,
)

HIDDEN = "last_hidden_state"
TRANSFORMER = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
PATCHES = {**TRANSFORMER, "image_size": PIXELS, "patch_size": 8}
BOTH_HALVES = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
}


def _encoder(model: nn.Module) -> Built:
    mask = torch.ones(SENTENCES, TOKENS, dtype=torch.long)
    return Picked(model, ("input_ids", "attention_mask"), HIDDEN), (token_ids(), mask)


def bert() -> Built:
    return _encoder(transformers.BertModel(transformers.BertConfig(**ENCODER)))


def bert_classifier() -> Built:
    model = transformers.BertForSequenceClassification(transformers.BertConfig(**ENCODER, num_labels=3))
    return Picked(model, ("input_ids",), "logits"), (token_ids(),)


def roberta() -> Built:
    # Its positions start behind the padding token's.
    sizes = {**ENCODER, "max_position_embeddings": 66}
    return _encoder(transformers.RobertaModel(transformers.RobertaConfig(**sizes)))


def distilbert() -> Built:
    sizes = {"dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64}
    return _encoder(transformers.DistilBertModel(transformers.DistilBertConfig(vocab_size=VOCABULARY, **sizes)))


def _with_decoder(model: nn.Module) -> Built:
    names = ("input_ids", "decoder_input_ids")
    return Picked(model, names, "logits", use_cache=False), (token_ids(), token_ids(tokens=8))


def t5() -> Built:
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
    return _with_decoder(transformers.T5ForConditionalGeneration(transformers.T5Config(vocab_size=VOCABULARY, **sizes)))


def bart() -> Built:
    config = transformers.BartConfig(vocab_size=VOCABULARY, **BOTH_HALVES, max_position_embeddings=64)
    return _with_decoder(transformers.BartForConditionalGeneration(config))


def whisper_encoder() -> Built:
    positions = {"max_source_positions": 20, "max_target_positions": 32}
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
    config = transformers.WhisperConfig(
        vocab_size=VOCABULARY,
        num_mel_bins=16,
        **BOTH_HALVES,
        **positions,
        **special,
        suppress_tokens=None,
        begin_suppress_tokens=None,
    )
    model = transformers.WhisperModel(config).get_encoder()
    return Picked(model, ("input_features",), HIDDEN), (torch.randn(SENTENCES, 16, 40),)


def wav2vec2() -> Built:
    convolutions = {"conv_dim": (16, 16, 16), "conv_stride": (4, 2, 2), "conv_kernel": (8, 4, 2)}
    positions = {"num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2}
    config = transformers.Wav2Vec2Config(
        **TRANSFORMER,
        **convolutions,
        **positions,
        num_feat_extract_layers=3,
        vocab_size=VOCABULARY,
        feat_extract_norm="group",
    )
    return Picked(transformers.Wav2Vec2Model(config), ("input_values",), HIDDEN), (torch.randn(SENTENCES, 640),)


def _classifier(model: nn.Module) -> Built:
    return Picked(model, ("pixel_values",), "logits"), (image(),)


def vit() -> Built:
    return _classifier(transformers.ViTForImageClassification(transformers.ViTConfig(**PATCHES, num_labels=5)))


def resnet() -> Built:
    sizes = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"}
    return _classifier(transformers.ResNetForImageClassification(transformers.ResNetConfig(**sizes, num_labels=5)))


def convnext() -> Built:
    sizes = {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2}
    return _classifier(transformers.ConvNextForImageClassification(transformers.ConvNextConfig(**sizes, num_labels=5)))


def swin() -> Built:
    sizes = {"image_size": PIXELS, "patch_size": 2, "embed_dim": 8, "window_size": 4}
    config = transformers.SwinConfig(**sizes, depths=[2, 2], num_heads=[2, 2], num_labels=5)
    return _classifier(transformers.SwinForImageClassification(config))


def clip() -> Built:
    special = {"eos_token_id": 2, "pad_token_id": 1, "bos_token_id": 0}
    text = {**ENCODER, "max_position_embeddings": TOKENS, **special}
    config = transformers.CLIPConfig(text_config=text, vision_config=PATCHES, projection_dim=16)
    names = ("input_ids", "pixel_values")
    return Picked(transformers.CLIPModel(config), names, "logits_per_image"), (token_ids(), image())


ENCODERS = (
    entries("encoder", (bert, bert_classifier, roberta, distilbert))
    | entries("encdec", (t5, bart))
    | entries("audio", (whisper_encoder,), "encoder")
    | entries("audio", (wav2vec2,))
    | entries("vision", (vit, resnet, convnext, swin))
    | entries("multimodal", (clip,))
)
