"""Windows: convolutions, pools and folds beyond the samples of the op table, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from xdsl.dialects.builtin import TensorType, f32

import spyre_mlir
from spyre_mlir.dialects.aten_build import result_types
from spyre_mlir.dialects.tensors import TypedValue
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.helpers.sliding_windows import bordered, reach, taps
from tests.functions import FunctionModel
from tests.unit.ops.evaluation import run


def kernels(model: nn.Module, *args: torch.Tensor) -> int:
    """Kernels of a model that agrees with torch at every level."""
    compiled = spyre_mlir.compile(model.eval(), args, numerics="exact")
    assert compiled.verify(*args)
    text = compiled.mlir("spyre.kernel")
    return text.count("spyre.kernel.compute") + text.count("spyre.kernel.restickify")


def typed(*shape: int) -> TypedValue:
    return TypedValue(TensorType(f32, shape))


def types(overload: str, *tensors: Any, **attributes: Any) -> list[tuple[int, ...]]:
    entry = ATEN.find(overload)
    assert entry is not None
    names = [p.name for p in entry.params if p.is_tensor]
    bound: dict[str, Any] = {p.name: p.default for p in entry.params} | dict(zip(names, tensors, strict=False))
    return [t.get_shape() for t in result_types(entry, bound | attributes)]


@pytest.mark.slow(reason="compiles two large convolutions")
def test_a_window_costs_the_sum_of_its_extents_not_their_product() -> None:
    torch.manual_seed(0)
    small = kernels(nn.Conv2d(64, 64, 3), torch.randn(1, 64, 8, 8))
    large = kernels(nn.Conv2d(64, 64, 5), torch.randn(1, 64, 8, 8))
    assert large - small == 2 + 2


def test_overlapping_windows_of_a_transposed_convolution_add_up() -> None:
    layer = nn.ConvTranspose1d(1, 1, 3, bias=False)
    nn.init.ones_(layer.weight)
    compiled = spyre_mlir.compile(layer, (torch.ones(1, 1, 4),), numerics="exact")
    assert compiled(torch.tensor([[[1.0, 2.0, 3.0, 4.0]]])).flatten().tolist() == [1, 3, 6, 9, 7, 4]


@pytest.mark.parametrize(("stride", "dilation"), [(2, 1), (1, 3), (3, 2)])
def test_fold_takes_back_what_unfold_spreads(stride: int, dilation: int) -> None:
    size = {"kernel_size": 2, "stride": stride, "dilation": dilation, "padding": 1}

    def both(x: torch.Tensor) -> torch.Tensor:
        return functional.fold(functional.unfold(x, **size), (6, 5), **size)

    kernels(FunctionModel(both), torch.randn(1, 2, 6, 5))


def test_the_first_of_equal_elements_is_where_the_largest_is() -> None:
    x = torch.zeros(1, 1, 4, 4)
    for pool in (
        lambda x: functional.max_pool2d(x, 3, 1, return_indices=True),
        lambda x: functional.adaptive_max_pool2d(x, 2, return_indices=True),
    ):
        compiled = spyre_mlir.compile(FunctionModel(pool), (x,), numerics="exact")
        assert torch.equal(compiled(x)[1], pool(x)[1])


def test_unpooling_keeps_the_largest_of_elements_with_one_place() -> None:
    values, places = torch.tensor([[[[1.0, 3.0, 2.0]]]]), torch.tensor([[[[1, 1, 2]]]])
    compiled = spyre_mlir.compile(
        FunctionModel(lambda v, w: torch.ops.aten.max_unpool2d(v, w, (1, 4))), (values, places), numerics="exact"
    )
    assert compiled(values, places).flatten().tolist() == [0.0, 3.0, 2.0, 0.0]


def test_a_last_window_starts_inside_the_padded_input() -> None:
    size = {"kernel_size": (2,), "stride": (2,), "padding": (1,), "ceil_mode": True}
    for extent in range(2, 9):
        expected = functional.max_pool1d(torch.zeros(1, 1, extent), 2, 2, 1, ceil_mode=True).shape
        assert types("max_pool1d", typed(1, 1, extent), **size) == [tuple(expected)]


def test_padding_loses_to_numbers_below_the_halves() -> None:
    x = -70000.0 - 1000 * torch.arange(12.0).view(1, 1, 3, 4)
    pool = FunctionModel(lambda x: functional.max_pool2d(x, 3, 2, 1, return_indices=True))
    compiled = spyre_mlir.compile(pool, (x,))
    assert compiled.verify(x), compiled.verify(x)
    torch.testing.assert_close(compiled(x)[0], functional.max_pool2d(x, 3, 2, 1), rtol=2e-3, atol=0)


def test_taps_are_neighbours_unless_said_otherwise() -> None:
    x = np.arange(6.0)
    plain = run(lambda b, x: tuple(taps(b, x, 0, 2, 1)), x)
    assert [one.tolist() for one in plain] == [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]
    wide = run(lambda b, x: tuple(taps(b, x, 0, 3, 1, 2)), x)
    assert [one.tolist() for one in wide] == [[0, 1], [2, 3], [4, 5]]
    steps = run(lambda b, x: tuple(taps(b, x, 0, 2, 3)), x)
    assert [one.tolist() for one in steps] == [[0, 3], [1, 4]]
    with pytest.raises(UnsupportedError, match="a window of 7 over 6 elements"):
        run(lambda b, x: tuple(taps(b, x, 0, 7, 1)), x)


def test_a_border_reaches_as_far_as_the_last_place() -> None:
    """Windows of 2, three apart, over five elements and a zero on either side: places 0 and 3, elements 0 to 4."""
    (out,) = run(lambda b, x: bordered(b, x, 0, 1, 1, 2, 3, 1), np.arange(1.0, 6.0))
    assert out.tolist() == [0, 1, 2, 3, 4]
    assert (reach(3), reach(3, 2)) == (3, 5)
