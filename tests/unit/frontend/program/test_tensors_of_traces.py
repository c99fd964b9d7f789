"""Which tensors have numbers; traces and transforms give others."""

from __future__ import annotations

import pytest
import torch

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.program.tensors_of_traces import check_has_numbers
from spyre_mlir.frontend.torch_private import FakeTensorMode


def test_tensors_of_traces_are_refused() -> None:
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(torch.ones(2))
    with pytest.raises(InputError, match="'x' is a tensor of a trace"):
        check_has_numbers("x", fake)


def test_tensors_of_transforms_are_refused() -> None:
    with pytest.raises(InputError, match="'x' is a tensor of a transform of torch"):
        torch.vmap(lambda row: check_has_numbers("x", row))(torch.ones(2, 2))


def test_all_else_has_numbers_or_is_refused_for_its_form() -> None:
    for tensor in (torch.ones(2), torch.nn.Parameter(torch.ones(2)), torch.ones(2, device="meta")):
        check_has_numbers("x", tensor)
