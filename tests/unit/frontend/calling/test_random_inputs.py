"""Random inputs have the structure, shapes and types that a call needs."""

from __future__ import annotations

import torch

from spyre_mlir.frontend import import_program, random_inputs


class Mixed(torch.nn.Module):
    def forward(self, x: torch.Tensor, pair: tuple[torch.Tensor, float], *, mask: torch.Tensor) -> torch.Tensor:
        return torch.where(mask, x, pair[0] * pair[1])


def test_inputs_of_every_kind() -> None:
    x, whole, mask = torch.ones(4, 64), torch.ones(4, 64, dtype=torch.int64), torch.ones(4, 64, dtype=torch.bool)
    program = import_program(Mixed(), (x, (whole, 2.5)), {"mask": mask})
    (drawn, (integers, number)), kwargs = random_inputs(program)
    assert drawn.dtype is torch.float32 and drawn.shape == x.shape
    assert -1 <= drawn.min() < -0.5 and 0.5 < drawn.max() < 1
    assert (integers.dtype, number) == (torch.int64, 2.5)
    assert set(integers.unique().tolist()) == set(range(10))
    assert set(kwargs) == {"mask"} and set(kwargs["mask"].unique().tolist()) == {False, True}
