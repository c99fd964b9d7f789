"""timm: picture models of different kinds; some are the small ones that the package keeps for its own tests."""

from __future__ import annotations

from typing import Any

from tests.clients.catalogue.entry import entries
from tests.models.entry import Built, image

TRANSFORMER: dict[str, Any] = {
    "img_size": 32,
    "patch_size": 8,
    "embed_dim": 32,
    "depth": 2,
    "num_heads": 4,
    "num_classes": 10,
}


def _named(name: str, **options: Any) -> Built:
    import timm

    return timm.create_model(name, pretrained=False, num_classes=10, **options), (image(),)


def vit() -> Built:
    from timm.models.vision_transformer import VisionTransformer

    return VisionTransformer(**TRANSFORMER, qk_norm=True, init_values=1e-5), (image(),)


def deit_distilled() -> Built:
    from timm.models.deit import VisionTransformerDistilled

    return VisionTransformerDistilled(**TRANSFORMER), (image(),)


def beit() -> Built:
    from timm.models.beit import Beit

    return Beit(**TRANSFORMER, use_rel_pos_bias=True), (image(),)


def eva02() -> Built:
    from timm.models.eva import Eva

    return Eva(**TRANSFORMER, use_rot_pos_emb=True, swiglu_mlp=True, scale_mlp=True), (image(),)


def cait() -> Built:
    from timm.models.cait import Cait

    return Cait(**TRANSFORMER), (image(),)


def mlp_mixer() -> Built:
    from timm.models.mlp_mixer import MlpMixer

    return MlpMixer(10, 32, patch_size=8, num_blocks=2, embed_dim=32), (image(),)


def swin_v2() -> Built:
    from timm.models.swin_transformer_v2 import SwinTransformerV2

    sizes = {"img_size": 32, "patch_size": 2, "embed_dim": 16, "window_size": 4, "num_classes": 10}
    return SwinTransformerV2(**sizes, depths=(2, 1), num_heads=(2, 4)), (image(),)


def poolformer() -> Built:
    """Average pooling takes the place of attention."""
    from timm.models.metaformer import MetaFormer, Pooling

    return MetaFormer(depths=(1, 1), dims=(16, 32), token_mixers=Pooling, num_classes=10), (image(),)


def convmixer() -> Built:
    from timm.models.convmixer import ConvMixer

    return ConvMixer(16, 2, kernel_size=5, patch_size=4, num_classes=10), (image(),)


def levit() -> Built:
    from timm.models.levit import Levit

    sizes = {"img_size": 64, "embed_dim": (16, 32), "key_dim": 8, "depth": (1, 1), "num_heads": (2, 4)}
    return Levit(**sizes, num_classes=10), (image(64, images=1),)


def resnet() -> Built:
    return _named("test_resnet")


def convnext() -> Built:
    return _named("test_convnext")


def efficientnet() -> Built:
    return _named("test_efficientnet")


def byobnet() -> Built:
    return _named("test_byobnet")


TIMM = entries(
    "timm",
    vit,
    deit_distilled,
    beit,
    eva02,
    cait,
    mlp_mixer,
    swin_v2,
    poolformer,
    convmixer,
    levit,
    resnet,
    convnext,
    efficientnet,
    byobnet,
)
