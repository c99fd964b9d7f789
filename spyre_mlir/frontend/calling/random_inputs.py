"""Random inputs for a trial of a program, as its caller would give them."""

from __future__ import annotations

from typing import Any

import torch

from spyre_mlir.frontend.program.program import Argument, Program, TreeConstant

INTEGERS_BELOW = 10


def random_inputs(program: Program) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return positional and keyword inputs: numbers uniform in [-1, 1), integers from 0 to 9."""
    leaves = [leaf.value if isinstance(leaf, TreeConstant) else _random(leaf) for leaf in program.input_leaves]
    args, kwargs = program.input_tree.unflatten(leaves)
    return tuple(args), dict(kwargs)


def _random(argument: Argument) -> torch.Tensor:
    shape, dtype = argument.shape, argument.dtype
    if dtype.is_floating_point:
        return (torch.rand(shape) * 2 - 1).to(dtype)
    return torch.randint(0, 2 if dtype is torch.bool else INTEGERS_BELOW, shape).to(dtype)
