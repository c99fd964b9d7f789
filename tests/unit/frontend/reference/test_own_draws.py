"""Executors of one run each: two of them side by side draw the same numbers."""

import numpy as np
import torch
from xdsl.dialects.builtin import TensorType, f32

from spyre_mlir.dialects.host_call import HostCall
from spyre_mlir.frontend.reference.own_draws import OwnDraws

CALL = HostCall("rand", {"size": (4,)}, (), (TensorType(f32, [4]),), "here")


def test_runs_side_by_side_draw_the_same() -> None:
    torch.manual_seed(2)
    before = torch.get_rng_state()
    one, two = OwnDraws(), OwnDraws()
    first = [one(CALL, [], wide=False)[0], two(CALL, [], wide=True)[0], one(CALL, [], wide=False)[0]]
    second = two(CALL, [], wide=False)[0]
    assert torch.equal(before, torch.get_rng_state())
    expected = torch.rand(4).numpy(), torch.rand(4).numpy()
    np.testing.assert_array_equal(first[0], expected[0])
    np.testing.assert_array_equal(first[1], expected[0])
    np.testing.assert_array_equal(first[2], expected[1])
    np.testing.assert_array_equal(second, expected[1])
