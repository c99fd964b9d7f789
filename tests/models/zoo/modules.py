"""Modules of torch.nn by themselves, and functions by family."""

from __future__ import annotations

import torch
from torch import nn

from tests.models.entry import Built, entries

Tensors = tuple[torch.Tensor, ...]


def mlp() -> Built:
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8), nn.Softmax(-1)), (torch.randn(4, 16),)


def lstm() -> Built:
    return nn.LSTM(8, 16, num_layers=2, batch_first=True), (torch.randn(2, 5, 8),)


def gru() -> Built:
    return nn.GRU(8, 16, batch_first=True), (torch.randn(2, 5, 8),)


def multihead_attention() -> Built:
    return nn.MultiheadAttention(16, 4, batch_first=True), (torch.randn(2, 5, 16), *torch.randn(2, 2, 7, 16))


def transformer_encoder() -> Built:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, activation="gelu")
    return nn.TransformerEncoder(layer, 2), (torch.randn(2, 5, 16),)


def transformer_decoder() -> Built:
    layer = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True)
    return nn.TransformerDecoder(layer, 2), (torch.randn(2, 5, 16), torch.randn(2, 7, 16))


class Convolutions(nn.Module):
    """Along one, two and three dimensions, by channel, and transposed."""

    def __init__(self) -> None:
        super().__init__()
        self.along_one, self.along_two, self.along_three = (
            kind(4, 8, 3, stride=2, padding=1) for kind in (nn.Conv1d, nn.Conv2d, nn.Conv3d)
        )
        self.by_channel = nn.Conv2d(4, 4, 3, padding="same", groups=4, dilation=2)
        self.transposed = nn.ConvTranspose2d(4, 8, 3, stride=2, padding=1, output_padding=1)

    def forward(self, line: torch.Tensor, plane: torch.Tensor, space: torch.Tensor) -> Tensors:
        direct = self.along_one(line), self.along_two(plane), self.along_three(space)
        return *direct, self.by_channel(plane), self.transposed(plane)


def convs() -> Built:
    return Convolutions(), (torch.randn(2, 4, 8), torch.randn(2, 4, 8, 8), torch.randn(2, 4, 6, 6, 6))


class Norms(nn.Module):
    """Everything that divides by a deviation."""

    def __init__(self) -> None:
        super().__init__()
        self.batch_1d, self.batch_2d = nn.BatchNorm1d(8), nn.BatchNorm2d(8)
        self.group, self.instance = nn.GroupNorm(2, 8), nn.InstanceNorm2d(8, affine=True)
        self.layer, self.rms = nn.LayerNorm([6, 6]), nn.RMSNorm(6)
        self.response = nn.LocalResponseNorm(3)

    def forward(self, x: torch.Tensor) -> Tensors:
        y = self.instance(self.group(self.batch_2d(x)))
        chain = self.rms(self.layer(y))
        return chain, self.batch_1d(x.flatten(2)), self.response(x), nn.functional.normalize(x, dim=1)


def norms() -> Built:
    return Norms(), (torch.randn(2, 8, 6, 6),)


class Pools(nn.Module):
    """Windows: their largest, their average, their elements."""

    def forward(self, x: torch.Tensor) -> Tensors:
        f = nn.functional
        values, where = f.max_pool2d(x, 2, return_indices=True)
        return (
            f.max_pool2d(x, 3, 2, 1),
            f.avg_pool2d(x, 2),
            f.adaptive_avg_pool2d(x, 1),
            f.adaptive_avg_pool2d(x, 3),
            f.adaptive_max_pool2d(x, 1),
            f.lp_pool2d(x, 2.0, 2),
            values,
            where,
            f.avg_pool1d(x.flatten(2), 3),
            f.max_unpool2d(values, where, 2),
            f.pixel_shuffle(x, 2),
            f.pixel_unshuffle(x, 2),
            f.unfold(x, 2),
        )


def pools() -> Built:
    return Pools(), (torch.randn(2, 4, 8, 8),)


class Embeddings(nn.Module):
    """Rows of a table, bags of them, and the row numbers as vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Embedding(10, 8, padding_idx=0)
        self.bags = nn.EmbeddingBag(10, 8, mode="mean")

    def forward(self, numbers: torch.Tensor) -> Tensors:
        return self.rows(numbers), self.bags(numbers), nn.functional.one_hot(numbers, 10)


def embeddings() -> Built:
    return Embeddings(), (torch.randint(0, 10, (3, 4)),)


class Resample(nn.Module):
    """Pictures of another size, and their borders."""

    def forward(self, x: torch.Tensor, grid: torch.Tensor) -> Tensors:
        f = nn.functional
        return (
            f.interpolate(x, scale_factor=2.0),
            f.interpolate(x, size=(5, 7), mode="bilinear", align_corners=True),
            f.interpolate(x, scale_factor=2.0, mode="bicubic"),
            f.grid_sample(x, grid, align_corners=False),
            f.pad(x, (1, 1, 1, 1), mode="reflect"),
            f.pad(x[0], (1, 1), mode="replicate"),
            f.pad(x, (1, 2)),
            f.interpolate(x, size=(2, 2), mode="area"),
        )


def resample() -> Built:
    return Resample(), (torch.randn(1, 2, 4, 4), torch.rand(1, 3, 3, 2) * 2 - 1)


MODULES = entries(
    "module",
    (
        mlp,
        lstm,
        gru,
        multihead_attention,
        transformer_encoder,
        transformer_decoder,
        convs,
        norms,
        pools,
        embeddings,
        resample,
    ),
)
