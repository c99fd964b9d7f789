"""torchvision: classifiers of different kinds, made narrow and shallow by their own arguments."""

from __future__ import annotations

from torch import nn

from tests.clients.catalogue.entry import entries
from tests.models.entry import Built, image

CLASSES = 10
STAGES = [1, 1, 1, 1]


def resnet() -> Built:
    from torchvision.models.resnet import BasicBlock, ResNet

    return ResNet(BasicBlock, STAGES, CLASSES), (image(),)


def resnext() -> Built:
    from torchvision.models.resnet import Bottleneck, ResNet

    return ResNet(Bottleneck, STAGES, CLASSES, groups=4, width_per_group=8), (image(),)


def mobilenet_v3() -> Built:
    from torchvision.models.mobilenetv3 import InvertedResidualConfig, MobileNetV3

    stages = [
        InvertedResidualConfig(16, 3, 16, 16, True, "RE", 2, 1, 1.0),
        InvertedResidualConfig(16, 5, 32, 24, True, "HS", 2, 1, 1.0),
    ]
    return MobileNetV3(stages, 64, CLASSES), (image(),)


def efficientnet() -> Built:
    from torchvision.models.efficientnet import EfficientNet, FusedMBConvConfig, MBConvConfig

    stages = [FusedMBConvConfig(1, 3, 1, 16, 8, 1), MBConvConfig(4, 3, 2, 8, 16, 1, 1.0, 1.0)]
    return EfficientNet(stages, 0.2, num_classes=CLASSES, last_channel=64), (image(),)


def shufflenet_v2() -> Built:
    from torchvision.models import ShuffleNetV2

    return ShuffleNetV2([2, 2, 2], [8, 16, 32, 64, 64], CLASSES), (image(),)


def densenet() -> Built:
    from torchvision.models import DenseNet

    return DenseNet(8, (2, 2), 16, num_classes=CLASSES), (image(),)


def squeezenet() -> Built:
    from torchvision.models import SqueezeNet

    return SqueezeNet("1_1", CLASSES), (image(),)


def regnet() -> Built:
    from torchvision.models.regnet import BlockParams, RegNet

    sizes = BlockParams([1, 1], [16, 32], [8, 8], [1.0, 1.0], [2, 2], 0.25)
    return RegNet(sizes, CLASSES, 16), (image(),)


def vit() -> Built:
    from torchvision.models import VisionTransformer

    return VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=CLASSES), (image(),)


def swin() -> Built:
    from torchvision.models import SwinTransformer

    return SwinTransformer([4, 4], 16, [2, 2], [2, 4], [4, 4], num_classes=CLASSES), (image(),)


def convnext() -> Built:
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt

    return ConvNeXt([CNBlockConfig(16, 32, 1), CNBlockConfig(32, None, 1)], num_classes=CLASSES), (image(),)


def vgg() -> Built:
    """Its convolutions before a head of one matrix: the one that it comes with has 120 million weights."""
    from torchvision.models.vgg import make_layers

    layers = make_layers([8, "M", 16, "M", 32, "M"], batch_norm=True)
    return nn.Sequential(layers, nn.AdaptiveAvgPool2d((2, 2)), nn.Flatten(), nn.Linear(128, CLASSES)), (image(),)


def inception_block() -> Built:
    """A block of Inception v3: average pooling of three by three beside convolutions."""
    from torchvision.models.inception import InceptionA

    return InceptionA(16, 8), (image(8, 16),)


TORCHVISION = entries(
    "torchvision",
    resnet,
    resnext,
    mobilenet_v3,
    efficientnet,
    shufflenet_v2,
    densenet,
    squeezenet,
    regnet,
    vit,
    swin,
    convnext,
    vgg,
    inception_block,
)
