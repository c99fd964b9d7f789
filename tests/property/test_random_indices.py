"""Random choosing and placing by one to three index tensors: torch's numbers in exact and in device numerics."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import spyre_mlir
from tests.property.examples import examples

EXTENTS = (1, 2, 5, 7, 33, 66)


class Chosen(nn.Module):
    """What index tensors choose, after the dimensions that they leave alone."""

    def __init__(self, skipped: int, kind: str) -> None:
        super().__init__()
        self.skipped, self.kind = skipped, kind

    def forward(self, x: torch.Tensor, value: torch.Tensor, *indices: torch.Tensor) -> torch.Tensor:
        places: Any = (*(slice(None),) * self.skipped, *indices)
        if self.kind == "index":
            return x[places]
        if self.kind == "put":
            return x.put(indices[0], value, accumulate=True)
        holes: Any = [*(None,) * self.skipped, *indices]
        return torch.ops.aten.index_put(x, holes, value, self.kind == "add")


@st.composite
def cases(draw: st.DrawFn) -> tuple[Chosen, tuple[torch.Tensor, ...]]:
    kind = draw(st.sampled_from(["index", "set", "add", "put"]))
    count = 1 if kind == "put" else draw(st.integers(1, 3))
    skipped = 0 if kind == "put" else draw(st.integers(0, 1))
    rank = count + skipped + draw(st.integers(0, 1))
    shape = draw(st.tuples(*[st.sampled_from(EXTENTS if rank < 3 else EXTENTS[:4])] * rank))
    seed = torch.Generator().manual_seed(draw(st.integers(0, 99)))
    chosen = draw(st.sampled_from([(3,), (9,), (2, 3), (40,)]))
    limits = list(shape[skipped:][:count]) if kind != "put" else [torch.Size(shape).numel()]
    if kind == "set":  # torch leaves open which of several writes to one place is last
        chosen = (min(limits),)
        indices = [torch.randperm(limit, generator=seed)[: chosen[0]] for limit in limits]
    else:
        indices = [torch.randint(-limit, limit, chosen, generator=seed) for limit in limits]
    if count > 1 and len(chosen) == 2 and draw(st.booleans()):
        indices[0], indices[1] = indices[0][:, :1], indices[1][:1]
    x = torch.randint(-16, 17, shape, generator=seed).float() / 4
    like = chosen if kind == "put" else x[(*(slice(None),) * skipped, *indices)].shape
    value = torch.randint(-16, 17, tuple(like), generator=seed).float() / 4
    return Chosen(skipped, kind), (x, value, *indices)


@examples(3)
@given(cases())
def test_random_indices(case: tuple[Chosen, tuple[torch.Tensor, ...]]) -> None:
    model, args = case
    wanted = model(*args)
    for numerics in ("exact", "device"):
        compiled = spyre_mlir.compile(model, args, numerics=numerics)
        # Sums of quarters of whole numbers: DL16 holds them all, so that nothing is rounded.
        torch.testing.assert_close(compiled(*args), wanted, rtol=0, atol=0)
