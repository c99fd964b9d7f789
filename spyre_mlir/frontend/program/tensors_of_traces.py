"""Tensors without numbers, which traces and transforms of torch give to a compiled model that they meet.

Decision: docs/decisions/0252-calls-of-compiled-models-are-not-traced.md
"""

from __future__ import annotations

import torch

from spyre_mlir.errors import InputError
from spyre_mlir.frontend.torch_private import is_fake, is_functional, is_wrapped

OUTER_HINT = "compile the outer model with the module that this one was made of, or call this one between programs"


def check_has_numbers(name: str, value: torch.Tensor) -> None:
    """Refuse a tensor that a trace or a transform gives.

    Args:
        name: of the argument.
        value: the tensor.

    Raises:
        InputError: it is one.
    """
    if is_wrapped(value):
        raise InputError(
            f"argument '{name}' is a tensor of a transform of torch.func, such as vmap or grad, which do not see into "
            "a compiled model",
            hint="transform the module, and compile what results; instead of vmap, compile for the whole batch",
        )
    if is_fake(value) or is_functional(value):
        raise InputError(
            f"argument '{name}' is a tensor of a trace: a compiled model is called while torch traces another one",
            hint=OUTER_HINT,
        )


__all__ = ["OUTER_HINT", "check_has_numbers"]
