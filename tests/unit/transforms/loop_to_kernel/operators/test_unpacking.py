"""Digits of words by kernels: exact for all words, however the conversion to float32 rounds."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn
from xdsl.ir import SSAValue

from spyre_mlir.dialects.spyre.kernel import KernelOp, device_tensor
from spyre_mlir.frontend import import_program
from spyre_mlir.hw.few_bits import Words
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import ops

Array = NDArray[Any]
ROUNDINGS = ("nearest", "down", "up", "to zero")


MEANINGS: dict[str, Callable[..., Array]] = {
    "identity": lambda x: x,
    "fp32todl16": lambda x: x,
    "fp32toint32": lambda x: x.astype(np.int64),
    "addi32toi32": np.add,
    "floor": np.floor,
    "mul": np.multiply,
    "batchnormfwd": lambda x, scale, shift: x * scale + shift,
    "sub": np.subtract,
}


def as_float32(words: Array, rounding: str) -> Array:
    """Integers as float32, rounded in one of several ways."""
    found, exact = words.astype(np.float32), words.astype(np.float64)
    beyond = {
        "nearest": np.zeros(words.shape, bool),
        "down": found > exact,
        "up": found < exact,
        "to zero": np.abs(found.astype(np.float64)) > np.abs(exact),
    }[rounding]
    toward = {"down": -np.inf, "up": np.inf}.get(rounding, 0.0)
    return np.where(beyond, np.nextafter(found, np.float32(toward)), found)


def run(kernels: list[KernelOp], words: Array, rounding: str) -> list[Array]:
    """Results of kernels that unpack, element by element, in the arithmetic of float32; products' second operands."""
    values: dict[SSAValue, Array] = {}
    digits: list[Array] = []

    def read(value: SSAValue) -> Array:
        if value in values:
            return values[value]
        number = getattr(value.owner, "value", None)
        return words if number is None else np.float32(number.value.data)

    for op in kernels:
        if op.is_product:
            digits.append(values[op.inputs[1]])
            continue
        operands = [read(value) for value in op.inputs]
        form = device_tensor(op.output).format
        if op.function_name == "int32tofp32":
            made = as_float32(operands[0], rounding)
        else:
            made = MEANINGS[op.function_name](*operands)
        if form == "IEEE_INT32":
            assert made.min() >= -(2**31) and made.max() < 2**31, "nothing wraps"
        if form == "SEN169_FP16":
            _, exponents = np.frexp(made)
            assert (np.ldexp(np.round(np.ldexp(made, 10 - exponents)), exponents - 10) == made).all(), "DL16 has them"
        values[op.output] = made
    return digits


class Layer(nn.Module):
    def __init__(self, rows: int, least: int) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(2)
        weight = torch.randint(least, -least, (rows, 320), dtype=torch.int8, generator=draw)
        self.register_buffer("weight", weight)
        self.weight: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight.half().t()


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("bits", [8, 4])
def test_every_digit_of_every_word_comes_back(bits: int, rounding: str) -> None:
    """A million random words, and all of digits at the ends and the middle of their range."""
    words = Words(bits)
    model, x = Layer(64 * words.count, words.least), torch.zeros(1, 320).half()
    modules = lower(import_program(model, (x,)).module, make_context(), options={"plan": {"loops": False}}).modules
    kernels = [op for op in ops(modules["spyre.kernel"], KernelOp) if op.function_name != "identity" or _of_words(op)]
    last = next(number for number in reversed(range(len(kernels))) if kernels[number].is_product)
    least = words.least
    ends = np.array(
        [least, least // 2 - 1, least // 2, -1, 0, -least // 2, -least - 1] if bits == 8 else [-8, -1, 0, 7]
    )
    all_ends = np.array(np.meshgrid(*[ends] * words.count)).reshape(words.count, -1)
    random = np.random.default_rng(bits).integers(least, -least, (words.count, 1_000_000))
    given = np.concatenate([random, all_ends], axis=1).astype(np.int8)
    found = run(kernels[: last + 1], words.apply(given).astype(np.int64), rounding)
    assert len(found) == words.count
    before = next(number for number, op in enumerate(kernels) if _of_words(op))
    steps = [op for op in kernels[before + 1 : last + 1] if not op.is_product and prod(op.space.extents.values()) > 320]
    assert len(steps) == (21 if bits == 8 else 34), "each takes as long as all words do"
    for number, digit in enumerate(found):
        np.testing.assert_array_equal(digit, given[number])


def _of_words(op: KernelOp) -> bool:
    return device_tensor(op.output).format == "IEEE_INT32"
