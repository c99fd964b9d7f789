"""The operators that draw random numbers.

Each call gives other numbers, so calls are neither merged, moved past each other, dropped, nor computed ahead.

The namespace ``random`` has one operator for every way in which torch fills a tensor with random numbers, given the
tensor's size and strides: torch draws in the order in which elements lie in memory.

Decision: docs/decisions/0136-random-numbers-are-eagers.md
"""

from __future__ import annotations

# Operators of torch that make a tensor from numbers alone, or read the values of their operands.
DRAWING = (
    "rand",
    "randn",
    "randint",
    "randint.low",
    "randperm",
    "normal.float_float",
    "normal.Tensor_float",
    "normal.float_Tensor",
    "normal.Tensor_Tensor",
    "bernoulli",
    "multinomial",
    "rrelu_with_noise_functional",
    "poisson",
    "binomial",
    "_standard_gamma",
    "_sample_dirichlet",
)
NAMESPACE = "random"
# The fillings of a tensor by torch, without the underscore of their names.
FILLINGS = (
    "uniform",
    "normal",
    "bernoulli",
    "exponential",
    "geometric",
    "cauchy",
    "log_normal",
    "integers",
)
_DRAWS = frozenset((*DRAWING, *(f"{NAMESPACE}::{name}" for name in FILLINGS)))
_IN_TRAINING = frozenset(("rrelu_with_noise_functional",))  # elsewhere their slope is the mean
DRAWN = "random numbers are drawn by the host"


def draws(overload: str, *, training: bool = True) -> bool:
    """Return whether a call draws random numbers.

    Args:
        overload: ``.default`` dropped, with its namespace unless that is aten.
        training: its argument of that name, if it has one.
    """
    return overload in _DRAWS and (training or overload not in _IN_TRAINING)
