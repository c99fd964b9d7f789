"""ibm-fms, the models of IBM's Foundation Model Stack: every family that it has."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tests.clients.catalogue.entry import Calling, entries
from tests.models.entry import Built, image, token_ids

VOCABULARY, TOKENS = 128, 16
DECODER: dict[str, Any] = {
    "src_vocab_size": VOCABULARY,
    "nheads": 4,
    "nlayers": 2,
    "hidden_grow_factor": 2.0,
    "multiple_of": 32,
    "max_expected_seq_len": 64,
}
LLAMA = {**DECODER, "emb_dim": 64, "kvheads": 2}
ENCODER: dict[str, Any] = {"src_vocab_size": VOCABULARY, "emb_dim": 64, "nheads": 4, "nlayers": 2}
PICTURE = {"hidden_size": 64, "intermediate_size": 128, "nlayers": 2, "nheads": 4}


def _ready(model: Any) -> nn.Module:
    """The model as `fms.models.get_model` gives it: tables of angles are made, heads are tied."""
    if hasattr(model, "post_init"):
        model.post_init()
    return model


def _words(model: nn.Module) -> Built:
    return _ready(model), (token_ids(),)


def llama() -> Built:
    from fms.models.llama import LLaMA, LLaMAConfig

    return _words(LLaMA(LLaMAConfig(**LLAMA)))


def llama_unfused() -> Built:
    """As it is loaded for Spyre: every projection is a matrix of its own."""
    from fms.models.llama import LLaMA, LLaMAConfig

    return _words(LLaMA(LLaMAConfig(**LLAMA, fused_weights=False)))


GRANITE = {
    **LLAMA,
    "head_dim": 16,
    "embedding_multiplier": 12.0,
    "logits_scaling": 16.0,
    "residual_multiplier": 0.22,
    "attention_multiplier": 0.25,
}


def granite() -> Built:
    from fms.models.granite import Granite, GraniteConfig

    return _words(Granite(GraniteConfig(**GRANITE)))


def granite_moe_hybrid() -> Built:
    from fms.models.granite import GraniteConfig
    from fms.models.granite_moe_hybrid import GraniteMoeHybrid

    return _words(GraniteMoeHybrid(GraniteConfig(**GRANITE, tie_heads=True, fused_weights=False)))


def granite_swa() -> Built:
    from fms.models.granite_swa import GraniteSWA, GraniteSWAConfig

    sizes = {**GRANITE, "pad_id": 0, "is_swa_layer": [False, True], "window_length": 4}
    return _words(GraniteSWA(GraniteSWAConfig(**sizes)))


def mistral() -> Built:
    from fms.models.mistral import Mistral, MistralConfig

    return _words(Mistral(MistralConfig(**LLAMA, head_dim=16, sliding_window=8)))


def mistral3() -> Built:
    """The language model of it; pictures are merged before the compiled part."""
    from fms.models.mistral import MistralConfig
    from fms.models.mistral3 import Mistral3, Mistral3Config
    from fms.models.pixtral_vision import PixtralVisionConfig

    text = MistralConfig(**LLAMA, head_dim=16, sliding_window=8)
    vision = PixtralVisionConfig(**PICTURE, image_size=32, patch_size=8)
    model = Mistral3(Mistral3Config(text_config=text, vision_config=vision))
    return _ready(model), (torch.randn(2, TOKENS, 64),)


def ministral3() -> Built:
    from fms.models.ministral3 import Ministral3Text, Ministral3TextConfig

    rope = {
        "rope_type": "yarn",
        "rope_theta": 10_000.0,
        "factor": 2.0,
        "beta_fast": 32.0,
        "beta_slow": 1.0,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
        "original_max_position_embeddings": 32,
        "llama_4_scaling_beta": 0.1,
    }
    # Its `post_init` fails in this version, and what that does has been done already.
    return Ministral3Text(Ministral3TextConfig(**LLAMA, head_dim=16, rope_parameters=rope)), (token_ids(),)


def mixtral() -> Built:
    from fms.models.mixtral import Mixtral, MixtralConfig

    sizes = {"src_vocab_size": VOCABULARY, "nheads": 4, "kvheads": 2, "nlayers": 2, "max_expected_seq_len": 64}
    return _words(Mixtral(MixtralConfig(**sizes, dim=64, hidden_dim=64, num_experts=4)))


def gpt_oss() -> Built:
    from fms.models.gpt_oss import GptOss, GptOssConfig

    config = GptOssConfig(
        num_experts=4,
        src_vocab_size=VOCABULARY,
        emb_dim=64,
        head_dim=16,
        num_attention_heads=4,
        sliding_window=8,
        nheads=4,
        nlayers=2,
        kvheads=2,
        layer_types=["sliding_attention", "full_attention"],
    )
    return _words(GptOss(config))


def qwen3() -> Built:
    from fms.models.qwen3 import Qwen3, Qwen3Config

    return _words(Qwen3(Qwen3Config(**LLAMA, head_dim=16)))


def gpt_bigcode() -> Built:
    from fms.models.gpt_bigcode import GPTBigCode, GPTBigCodeConfig

    return _words(GPTBigCode(GPTBigCodeConfig(**ENCODER, max_expected_seq_len=64)))


def bamba() -> Built:
    from fms.models.bamba import Bamba, BambaConfig

    sizes = {**LLAMA, "head_dim": 16, "attn_layer_indices": [1], "state_size": 16, "mamba_n_heads": 8}
    return _words(Bamba(BambaConfig(**sizes, n_groups=2, chunk_size=8)))


def roberta() -> Built:
    from fms.models.roberta import RoBERTa, RoBERTaConfig

    return _words(RoBERTa(RoBERTaConfig(**ENCODER, max_pos=64)))


def roberta_classifier() -> Built:
    from fms.models.roberta import RoBERTaClassificationConfig, RoBERTaForClassification

    return _words(RoBERTaForClassification(RoBERTaClassificationConfig(**ENCODER, max_pos=64, num_classes=3)))


def roberta_question_answering() -> Built:
    from fms.models.roberta import RoBERTaForQuestionAnswering, RoBERTaQuestionAnsweringConfig

    return _words(RoBERTaForQuestionAnswering(RoBERTaQuestionAnsweringConfig(**ENCODER, max_pos=64)))


def bert() -> Built:
    from fms.models.roberta import RoBERTa, RoBERTaConfig

    return _words(RoBERTa(RoBERTaConfig(**ENCODER, max_pos=64, pos_emb="bert")))


def bert_classifier() -> Built:
    from fms.models.roberta import RoBERTaClassificationConfig, RoBERTaForClassification

    config = RoBERTaClassificationConfig(**ENCODER, max_pos=64, num_classes=2, pos_emb="bert")
    return _words(RoBERTaForClassification(config))


def mpnet() -> Built:
    from fms.models.mpnet import Mpnet, MpnetConfig

    return _words(Mpnet(MpnetConfig(**ENCODER, intermediate_size=128, max_expected_seq_len=64)))


def siglip_vision() -> Built:
    from fms.models.siglip_vision import SiglipVision, SiglipVisionConfig

    return _ready(SiglipVision(SiglipVisionConfig(**PICTURE, image_size=32, patch_size=8))), (image(),)


def pixtral_vision() -> Built:
    from fms.models.pixtral_vision import PixtralVisionConfig, PixtralVisionModel

    model = PixtralVisionModel(PixtralVisionConfig(**PICTURE, image_size=32, patch_size=8))
    return Calling(_ready(model), image_sizes=[(32, 32)]), (image(images=1),)


def llava_next() -> Built:
    """The language model of it; pictures are merged before the compiled part."""
    from fms.models.granite import GraniteConfig
    from fms.models.llava_next import LlavaNext, LlavaNextConfig
    from fms.models.siglip_vision import SiglipVisionConfig

    vision = SiglipVisionConfig(**PICTURE, image_size=32, patch_size=8)
    config = LlavaNextConfig(vision_config=vision, text_config=GraniteConfig(**GRANITE), vision_feature_layer=[-1])
    return _ready(LlavaNext(config)), (torch.randn(2, TOKENS, 64),)


FMS = entries(
    "fms",
    llama,
    llama_unfused,
    granite,
    granite_moe_hybrid,
    granite_swa,
    mistral,
    mistral3,
    ministral3,
    mixtral,
    gpt_oss,
    qwen3,
    gpt_bigcode,
    bamba,
    roberta,
    roberta_classifier,
    roberta_question_answering,
    bert,
    bert_classifier,
    mpnet,
    siglip_vision,
    pixtral_vision,
    llava_next,
)
