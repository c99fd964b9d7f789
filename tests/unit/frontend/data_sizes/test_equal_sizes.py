"""Sizes that a program says are equal have one symbol."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from spyre_mlir.frontend.data_sizes.dividing import Piece
from spyre_mlir.frontend.data_sizes.padded import PaddedPiece
from tests.unit.frontend.data_sizes.programs import division

X = torch.linspace(-1.0, 1.0, 12)


def last_piece(x: Tensor, function: object) -> Piece:
    *_, last = [step for step in division(function, x).steps if isinstance(step, Piece)]  # pyright: ignore
    return last


def test_a_mask_that_is_made_twice_has_one_size() -> None:
    piece = PaddedPiece(last_piece(X, lambda x: x[x > 0] + (x * 2)[x > 0] * (x + 1)[x > 0]), "Alike", masked=False)
    assert [str(symbol) for symbol in piece.symbols] == ["u0"]
    ones = [torch.ones(3)] * 3
    assert piece.sizes_of(ones) == {piece.symbols[0]: 3}
    assert piece.sizes_of([*ones[1:], torch.ones(2)]) is None


def test_keys_and_values_of_attention_have_one_size() -> None:
    def attention(x: Tensor) -> Tensor:
        key, value = (x.reshape(-1, 2)[x[::2] > 0][None, None] for _ in range(2))
        return scaled_dot_product_attention(x.reshape(1, 1, -1, 2), key, value)

    piece = PaddedPiece(last_piece(X, attention), "Attention", masked=False)
    assert [str(symbol) for symbol in piece.symbols] == ["u0"]


def test_sizes_of_different_masks_stay_apart() -> None:
    piece = PaddedPiece(last_piece(X, lambda x: x[x > 0][:, None] + x[x < 0]), "Apart", masked=False)
    assert [str(symbol) for symbol in piece.symbols] == ["u0", "u1"]


def test_parts_of_a_tensor_are_as_long_as_it() -> None:
    def parted(x: Tensor) -> Tensor:
        first, second = x.split(torch.stack([(x > 0).sum(), (x <= 0).sum()]).tolist())
        return torch.cat([first, second * 2])

    piece = PaddedPiece(last_piece(X, parted), "Parted", masked=True, bounds={})
    assert [str(symbol) for symbol in piece.symbols] == ["u0", "u1"]
    assert piece.extents() == {12}
