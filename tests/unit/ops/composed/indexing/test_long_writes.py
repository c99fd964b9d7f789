"""Writes along long rows in blocks, against numpy, which writes one after another."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import spyre_mlir
from spyre_mlir.ops.composed.indexing import long_writes
from spyre_mlir.ops.composed.indexing.long_writes import is_long, long_written
from spyre_mlir.ops.helpers import placing
from tests.functions import FunctionModel
from tests.unit.ops.evaluation import INF, NAN, made, run, same

RNG = np.random.default_rng(5)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few elements, so that rows of some dozens have all that long ones have."""
    for module in (long_writes, placing):
        monkeypatch.setattr(module, "BLOCK", 12)
        monkeypatch.setattr(module, "DIGIT", 4)
    monkeypatch.setattr(long_writes, "LONG", 0)


def after(own: np.ndarray, index: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Rows after all writes in order; those beyond a row are not made."""
    out = own.copy()
    for row, place, value in zip(range(len(own)), index, values, strict=True):
        for at, number in zip(place, value, strict=True):
            if 0 <= at < own.shape[1]:
                out[row, at] = number
    return out


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("kind", ["float16", "float64", "int64", "bool"])
@pytest.mark.parametrize(("count", "places"), [(36, 36), (41, 30), (13, 50)])
def test_the_last_of_several_writes_stays(kind: str, count: int, places: int) -> None:
    own, values = (RNG.integers(-9, 9, (2, n)).astype(kind) for n in (places, count))
    if kind.startswith("float"):
        values[0, :3], own[1, :3] = [NAN, INF, -INF], [INF, NAN, -INF]
    index = RNG.integers(0, places, (2, count))
    index[1, ::5] = index[1, -1]
    same(run(long_written, own, index, values)[0], after(own, index, values))
    if count == places:  # every place once, as after a sort
        index = np.stack([RNG.permutation(count), RNG.permutation(count)])
        same(run(long_written, own, index, values)[0], after(own, index, values))


@pytest.mark.usefixtures("small")
def test_indices_outside_write_nothing() -> None:
    own, values = np.zeros((1, 18)), np.arange(1.0, 15).reshape(1, 14)
    index = np.array([[-1, 0, 18, 19, 5, -9, 400, 17, 5, 1, -1, 70000, 2, 3]])
    same(run(long_written, own, index, values)[0], after(own, index, values))


def test_which_rows_are_long() -> None:
    def asked(shape: tuple[int, ...], count: int) -> bool:
        found = list[bool]()

        def ask(b: object, index: object) -> object:
            found.append(is_long(index, count))  # type: ignore[arg-type]
            return index

        made(ask, np.broadcast_to(np.int64(0), shape))
        return found[0]

    assert asked((2, 4096), 4096)
    assert not asked((2, 2048), 2048)  # 2^23 comparisons
    assert not asked((64, 1024), 1024)  # a block
    assert not asked((5, 4096), 4096)  # too many indices to compare with each other


@pytest.mark.usefixtures("small")
def test_every_level_writes_along_long_rows() -> None:
    x = torch.randn(2, 40, generator=torch.Generator().manual_seed(1)).half()
    index = torch.stack([torch.randperm(40, generator=torch.Generator().manual_seed(2)), torch.arange(40) // 3])
    compiled = spyre_mlir.compile(
        FunctionModel(lambda x, i: x.scatter(1, i.flip(0) + 0, x * 2) > 0.5), (x, index), cache=False
    )
    assert "batchmatmul" in compiled.mlir("spyre.kernel")
    assert compiled.verify(x, index)
    assert torch.equal(compiled(x, index), x.scatter(1, index.flip(0), x * 2) > 0.5)
