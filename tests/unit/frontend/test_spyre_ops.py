"""Operators of the namespace `spyre`, against their definitions by numpy and small numbers."""

from __future__ import annotations

import math

import pytest
import torch

from spyre_mlir.frontend.spyre_ops import LIBRARY

SPYRE = torch.ops.spyre
X = torch.tensor([[1.0, -2.0, 4.0], [0.0, 3.0, -1.0]])
INF = math.inf


def close(got: torch.Tensor, wanted: object) -> None:
    torch.testing.assert_close(got, torch.as_tensor(wanted), rtol=1e-6, atol=1e-6)


def test_the_library_is_that_of_spyre() -> None:
    assert LIBRARY.ns == "spyre"


def test_clamp_takes_either_end() -> None:
    assert SPYRE.clamp(X, -1, 3).tolist() == [[1, -1, 3], [0, 3, -1]]
    assert SPYRE.clamp(X, min=0).tolist() == [[1, 0, 4], [0, 3, 0]]
    assert SPYRE.clamp(X, max=0).tolist() == [[0, -2, 0], [0, 0, -1]]


def test_softplus_is_linear_beyond_its_threshold() -> None:
    x = torch.tensor([0.0, 2.0, 19.0, 21.0])
    close(SPYRE.softplus(x), [math.log(2), math.log1p(math.exp(2)), 19.0, 21.0])
    close(SPYRE.softplus(x, 2.0, 3.0), [math.log(2) / 2, 2.0, 19.0, 21.0])
    assert float(SPYRE.softplus(torch.tensor(19.5, dtype=torch.float64))) > 19.5, "below the threshold of 20"
    assert float(SPYRE.softplus(torch.tensor(20.5, dtype=torch.float64))) == 20.5
    assert float(SPYRE.softplus(torch.tensor(0.5), 1.0, 0.4)) == 0.5


def test_gelu_has_two_forms() -> None:
    x = 1.0
    by_tanh = 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    close(SPYRE.gelu(torch.tensor(x, dtype=torch.float64)), torch.tensor(0.5 * (1 + math.erf(2**-0.5))).double())
    assert float(SPYRE.gelu(torch.tensor(x, dtype=torch.float64), "tanh")) == pytest.approx(by_tanh, abs=1e-12)


def test_silu_and_logical_not() -> None:
    close(SPYRE.silu(torch.tensor([1.0, 0.0])), [1 / (1 + math.exp(-1)), 0.0])
    assert SPYRE.logical_not(torch.tensor([0.0, 2.0])).tolist() == [True, False]


def test_norms_are_the_functions_of_torch() -> None:
    weight, bias = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, 0.0, -1.0])
    centred = X - X.mean(-1, keepdim=True)
    normed = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    close(SPYRE.layer_norm(X, [3]), normed)
    close(SPYRE.layer_norm(X, [3], weight, bias, 1e-5), normed * weight + bias)
    close(SPYRE.layer_norm(X, [3], eps=4.0)[1], centred[1] / (centred[1].square().mean() + 4).sqrt())
    close(SPYRE.rms_norm(X, [3], weight, 2.0), X / (X.square().mean(-1, keepdim=True) + 2).sqrt() * weight)


def test_a_layer_norm_in_three_steps_is_a_layer_norm() -> None:
    moments = SPYRE.exx2(X, 1 / 3)
    close(moments, [[1.0, 7.0], [2 / 3, 10 / 3]])
    assert SPYRE.exx2(X, 0.5, True).tolist() == [[0, 10.5], [0, 5]]
    scale = SPYRE.layernormscale(moments, 2.0)
    close(scale, [[8**-0.5], [(44 / 9) ** -0.5]])
    weight, bias = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, 0.0, -1.0])
    close(SPYRE.layernormnorm(X, moments, scale, weight, bias)[0], [0.5, -6 * 8**-0.5, 9 * 8**-0.5 - 1])


def test_the_largest_and_smallest_are_values_and_places() -> None:
    assert SPYRE.topkvalue(X, 2).tolist() == [[4, 1], [3, 0]]
    assert SPYRE.topkindex(X, 2).tolist() == [[2, 0], [1, 0]]
    assert SPYRE.topkvalue(X, 1, 0, False).tolist() == [[0, -2, -1]]
    assert SPYRE.topkindex(X, 1, 0, False).tolist() == [[1, 0, 1]]
    values, places = SPYRE.max_dim_int64_fallback(X, 1)
    assert (values.tolist(), places.tolist()) == ([4, 3], [2, 1])
    values, places = SPYRE.min_dim_int64_fallback(X, 0, True)
    assert (values.tolist(), places.tolist()) == ([[0, -2, -1]], [[1, 0, 1]])
    assert SPYRE.max_dim_int64_fallback(X, 1, True)[0].shape == (2, 1)
    assert SPYRE.min_dim_int64_fallback(X, 1)[0].tolist() == [-2, -1]
    assert SPYRE.max_default_int64_fallback(X).item() == 4


def test_products() -> None:
    assert SPYRE.prod_dim_int(X, 1).tolist() == [-8, 0]
    assert SPYRE.prod_dim_int(X, 1, True).tolist() == [[-8], [0]]
    assert SPYRE.batched_matmul(X[None], X.t()[None]).tolist() == [[[21, -10], [-10, 10]]]


def test_convolution_with_and_without_bias() -> None:
    image, kernel = torch.arange(16.0).view(1, 1, 4, 4), torch.tensor([[[[1.0, 10.0]]]])
    plain = SPYRE.conv2d(image, kernel, [2, 1], [0, 1], [1, 2], 1)
    rows = [[10 * 1, 0 + 10 * 2, 1 + 10 * 3, 2], [10 * 9, 8 + 10 * 10, 9 + 10 * 11, 10]]
    assert plain.tolist() == [[rows]]
    biased = SPYRE.conv2d_with_bias(image, kernel, torch.tensor([0.5]), [2, 1], [0, 1], [1, 2], 1)
    assert torch.equal(biased, plain + 0.5)
    pairs = torch.ones(1, 2, 1, 1)
    apart = SPYRE.conv2d(pairs, torch.tensor([2.0, 3.0]).view(2, 1, 1, 1), [1, 1], [0, 0], [1, 1], 2)
    assert apart.flatten().tolist() == [2, 3]


def test_eight_bit_floats() -> None:
    fp8 = torch.float8_e4m3fn
    for cast in (SPYRE.qfp8ch, SPYRE.qfp8wt):
        assert cast(X).dtype is fp8
        assert cast(torch.tensor([1.0625, 448.0])).float().tolist() == [1.0, 448.0], "three bits behind the point"
    for quantize in (SPYRE.quantize_fp8_with_scale, SPYRE.quantize_weight_fp8_with_scale):
        got = quantize(torch.tensor([4.0, 4000.0, -4000.0]), torch.tensor(2.0))
        assert (got.dtype, got.float().tolist()) == (fp8, [2, 448, -448])
    assert SPYRE.quantscalepertokenfp8(X).tolist() == torch.tensor([[4 / 448], [3 / 448]]).tolist()
    assert SPYRE.quantscalepertokenfp8(X, 2.0).tolist() == [[2], [1.5]]
    back = SPYRE.dequantize_fp8_with_scale(torch.tensor([3.0]).to(fp8), torch.tensor([0.5], dtype=torch.float16))
    assert (back.dtype, back.tolist()) == (torch.float16, [1.5])
    product = SPYRE.scaled_mm(X.to(fp8), X.t().to(fp8), torch.bfloat16)
    assert (product.dtype, product.tolist()) == (torch.bfloat16, [[21, -10], [-10, 10]])


@pytest.mark.parametrize("name", ["restickify", "compact", "copy_forced", "tile_dim_marker"])
def test_moves_copy(name: str) -> None:
    x = X.clone()
    copied = getattr(SPYRE, name)(x, *([1] if name == "tile_dim_marker" else []))
    x.zero_()
    assert torch.equal(copied, X)


def test_a_block_overwrites_part_of_a_copy() -> None:
    whole, block = torch.zeros(3, 4), torch.tensor([[1.0, 2.0]])
    got = SPYRE.overwrite_f(block, whole, [0, 1], [2, 1])
    assert got.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 1, 2, 0]]
    assert not whole.any()


def test_kept_entries_are_those_of_an_index() -> None:
    assert SPYRE.keep_by_index(X, torch.tensor([[2, 0], [1, 1]])).tolist() == [[4, 1], [3, 3]]


def test_a_causal_mask_hides_what_comes_later() -> None:
    got = SPYRE.causal_mask(2, 3, torch.float16)
    assert (got.dtype, got.tolist()) == (torch.float16, [[0, 0, -INF], [0, 0, 0]])


def test_attention_in_a_window_sees_the_last_keys() -> None:
    """Keys are equal, so a query gives the mean of the values it sees: two, of four, the query being the last ones."""
    q, k = torch.ones(1, 1, 3, 2), torch.zeros(1, 1, 4, 2)
    v = torch.tensor([1.0, 2.0, 4.0, 8.0]).view(1, 1, 4, 1)
    assert SPYRE.sliding_window_attention(q, k, v, 2).flatten().tolist() == [1.5, 3, 6]
    assert SPYRE.sliding_window_attention(q, k, v, 1).flatten().tolist() == [2, 4, 8]
    k = torch.tensor([0.0, math.log(3.0)]).view(1, 1, 2, 1).expand(1, 1, 2, 2)
    got = SPYRE.sliding_window_attention(q[..., :1, :], k, v[..., :2, :], 2, 0.5)
    assert got.item() == pytest.approx((1 + 2 * 3) / 4)


def test_a_cast_copies() -> None:
    x = torch.ones(2)
    same, other = SPYRE.to_dtype_cpu(x, torch.float32), SPYRE.to_dtype_cpu(x, torch.int32)
    x.zero_()
    assert same.tolist() == [1, 1]
    assert other.dtype is torch.int32


def test_operators_can_be_traced_without_elements() -> None:
    empty = torch.empty(2, 3, device="meta")
    assert SPYRE.exx2(empty, 1.0).shape == (2, 2)
    assert SPYRE.topkindex(empty, 2).dtype is torch.int64
