"""Normalisation of groups of channels, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from spyre_mlir.errors import ConstraintError
from spyre_mlir.ops.composed.nn import group_normalization
from tests.unit.ops.composed.nn.test_normalization import CB, CW, RNG, X, channels, normal, statistics
from tests.unit.ops.evaluation import all_same, budgets, check_samples, defaults, result, results, same

IMAGE = RNG.normal(size=(1, 66, 3, 2)) * 2.0 + 0.5


def grouped(x: np.ndarray, groups: int, eps: float) -> np.ndarray:
    return normal(x.reshape(2, groups, -1), (2,), eps).reshape(x.shape)


def test_groups() -> None:
    plain = grouped(X, 2, 0.5)
    same(result("group_norm", X, num_groups=2, eps=0.5), plain)
    same(result("group_norm", X, CW, CB, num_groups=2, eps=0.5), plain * channels(CW) + channels(CB))
    same(result("group_norm", X, CW, num_groups=1, eps=0.5), grouped(X, 1, 0.5) * channels(CW))
    small = X * 1e-2
    same(result("group_norm", small, num_groups=4, cudnn_enabled=False), grouped(small, 4, 1e-5))
    deep = X.reshape(2, 4, 3, 1)
    same(result("group_norm", deep, CW, num_groups=2, eps=0.5), (plain * channels(CW)).reshape(deep.shape))


@pytest.mark.parametrize("groups", [1, 11, 66])
def test_groups_of_an_image_of_many_channels(groups: int) -> None:
    image = IMAGE.reshape(1, groups, -1)
    plain = normal(image, (2,), 0.5).reshape(IMAGE.shape)
    weight, bias = RNG.normal(size=(2, 66))
    along = [v.reshape(66, 1, 1) for v in (weight, bias)]
    for w, b in ((None, None), (weight, None), (None, bias), (weight, bias)):
        wanted = plain * (1 if w is None else along[0]) + (0 if b is None else along[1])
        same(result("group_norm", IMAGE, w, b, num_groups=groups, eps=0.5), wanted)
    facts = {"N": 1, "C": 66, "HxW": 6, "group": groups, "eps": 0.5}
    _, *rest = results("native_group_norm", IMAGE, weight, bias, **facts)
    all_same(rest, [s.reshape(1, groups) for s in statistics(image, (2,), 0.5)])


def test_groups_with_their_statistics() -> None:
    out, mean, inverse = results("native_group_norm", X, CW, CB, N=2, C=4, HxW=3, group=2, eps=0.5)
    same(out, grouped(X, 2, 0.5) * channels(CW) + channels(CB))
    wanted = statistics(X.reshape(2, 2, 6), (2,), 0.5)
    all_same([mean, inverse], [s.reshape(2, 2) for s in wanted])


@pytest.mark.parametrize("weight", [CW, None])
def test_gradients_of_groups_are_slopes(weight: np.ndarray | None) -> None:
    gradient, step = RNG.normal(size=X.shape), 1e-6

    def loss(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> float:
        return float((gradient * (grouped(x, 2, 0.5) * channels(w) + channels(b))).sum())

    def slopes(given: list[np.ndarray], at: int) -> np.ndarray:
        out = np.zeros(given[at].shape)
        for place in np.ndindex(out.shape):
            ends = []
            for sign in (1, -1):
                moved = [g.copy() for g in given]
                moved[at][place] += sign * step
                ends.append(loss(*moved))
            out[place] = (ends[0] - ends[1]) / (2 * step)
        return out

    mean, inverse = (s.reshape(2, 2) for s in statistics(X.reshape(2, 2, 6), (2,), 0.5))
    wanted = [slopes([X, np.ones(4) if weight is None else weight, CB], at) for at in range(3)]
    for mask in ((True, True, True), (True, False, True), (False, True, False)):
        facts = {"N": 2, "C": 4, "HxW": 3, "group": 2, "output_mask": mask}
        got = results("native_group_norm_backward", gradient, X, mean, inverse, weight, **facts)
        all_same(got, [w for w, asked in zip(wanted, mask, strict=True) if asked], rtol=1e-7, atol=1e-7)


def test_groups_of_other_extents_are_refused() -> None:
    with pytest.raises(ConstraintError, match=r"C1: N, C, HxW are \(2, 4, 4\), the extents are \(2, 4, 3\)"):
        results("native_group_norm", X, N=2, C=4, HxW=4, group=2, eps=0.5)


@pytest.mark.parametrize("groups", [1, 2])
def test_groups_of_several_images_by_their_channels(groups: int) -> None:
    plain = grouped(X, groups, 0.5)
    same(result("spyre::group_norm_by_channels", X, num_groups=groups, eps=0.5), plain)
    affine = plain * channels(CW) + channels(CB)
    same(result("spyre::group_norm_by_channels", X, CW, CB, num_groups=groups, eps=0.5), affine)
    deep = X.reshape(2, 4, 3, 1)
    same(result("spyre::group_norm_by_channels", deep, num_groups=groups, eps=0.5), plain.reshape(deep.shape))


def test_declarations() -> None:
    check_samples(group_normalization.__name__)
    assert {ulps for ulps, _ in budgets(group_normalization.__name__).values()} == {16}
    assert defaults(group_normalization.__name__) == {("eps", 1e-5), ("cudnn_enabled", True)}
