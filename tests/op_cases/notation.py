"""The notation of the op cases: what a word such as ``f16[67x256]{abs x0.1}`` stands for.

A tensor is a dtype, a shape, and steps in braces that say how its values are made and laid out; the shape is the one
the op sees, after steps that transpose. Floating values are rounded to DLFloat16: where an op is discontinuous, another
input would be another result, and elsewhere the rounding of an input is no error of the op.
"""

from __future__ import annotations

import ast
import math
import re
from dataclasses import dataclass
from typing import Any

import torch

from tests.oracles.dl16_emulation import rounded

DTYPES = {
    "f16": torch.float16,
    "f32": torch.float32,
    "bf16": torch.bfloat16,
    "bool": torch.bool,
    "i8": torch.int8,
    "i32": torch.int32,
    "i64": torch.int64,
}
TENSOR = re.compile(r"(?P<dtype>\w+)\[(?P<dims>[\dx]*)\](?:\{(?P<steps>.*)\})?", re.DOTALL)
CALL = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\)", re.DOTALL)
SCALE = re.compile(r"x(\d+\.\d+)")
BESIDE_ZERO = 0.125
MASKED = -65504.0
MAKING = ("arange", "literal", "zeros", "ones", "rand", "xavier")
# Steps by 1/64 up to 16 are DLFloat16 numbers: so many values can differ from one another.
FINENESS = 64


class NotationError(ValueError):
    """A word that is not of the notation."""


@dataclass(frozen=True)
class Tensor:
    """What the notation says about a tensor."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    steps: tuple[str, ...]

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)


def parse(word: str) -> Any:
    """A tensor's description, a dtype, a mapping of keywords, or a Python value."""
    if match := TENSOR.fullmatch(word):
        dims = tuple(int(n) for n in match["dims"].split("x")) if match["dims"] else ()
        return Tensor(_dtype(match["dtype"]), dims, tuple(words(match["steps"] or "")))
    if word in DTYPES:
        return DTYPES[word]
    if word in ("inf", "-inf"):
        return float(word)
    if word.startswith("{"):
        inner = word[1:-1]
        return parse(inner) if TENSOR.fullmatch(inner) else keywords(inner)
    return _value(word)


def words(text: str) -> list[str]:
    """The steps of a tensor: words apart from those inside brackets."""
    found, depth, start = [], 0, 0
    for place, sign in enumerate(text):
        depth += (sign in "([") - (sign in ")]")
        if sign == " " and depth == 0:
            found.append(text[start:place])
            start = place + 1
    return [word for word in (*found, text[start:]) if word]


def keywords(text: str) -> dict[str, Any]:
    """The arguments of ``p=0.5, training=False`` by name."""
    pairs = (part.split("=", 1) for part in text.split(", "))
    return {name: _value(value) for name, value in pairs}


def make(tensor: Tensor, generator: torch.Generator) -> torch.Tensor:
    """Values for a tensor; numbers are drawn from the generator."""
    layout = [step for step in tensor.steps if _is_layout(step)]
    shape = list(tensor.shape)
    order = _order(layout, len(shape))
    base = [0] * len(shape)
    for place, dim in enumerate(order):
        base[dim] = shape[place]
    steps = [step for step in tensor.steps if not _is_layout(step)]
    values = _values(tuple(base), tensor.dtype, steps, generator, order)
    for step in steps:
        values = _changed(values, step)
    values = rounded(values).to(tensor.dtype) if tensor.dtype.is_floating_point else values.to(tensor.dtype)
    values = values.permute(order)
    return _spread(values) if "as_strided" in layout else values


def _value(word: str) -> Any:
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError):
        raise NotationError(f"'{word}' is neither a tensor, nor a dtype, nor a value") from None


def _dtype(word: str) -> torch.dtype:
    if word not in DTYPES:
        raise NotationError(f"'{word}' is no dtype of the notation")
    return DTYPES[word]


def _is_layout(step: str) -> bool:
    return step in ("as_strided", "repeat") or step.startswith(("t(", "permute("))


def _order(layout: list[str], rank: int) -> list[int]:
    """Which dimension of the memory each dimension of the tensor is."""
    order = list(range(rank))
    for step in layout:
        if match := CALL.fullmatch(step):
            numbers = _value(f"({match['arguments']},)")
            if match["name"] == "t":
                a, b = numbers
                order[a], order[b] = order[b], order[a]
            else:
                order = [order[n] for n in numbers]
    return order


def _values(
    shape: tuple[int, ...], dtype: torch.dtype, steps: list[str], generator: torch.Generator, order: list[int]
) -> torch.Tensor:
    """The numbers that the first step says, or normally distributed ones."""
    first = steps[0] if steps else ""
    count = math.prod(shape)
    if first.startswith("="):
        return torch.tensor(_value(first[1:]), dtype=torch.float64)
    if match := CALL.fullmatch(first):
        return _called(match["name"], match["arguments"], shape, generator, dtype.is_floating_point)
    if first in ("arange", "literal"):
        # A literal that the cases only mention is as good as other small numbers that differ.
        return torch.arange(count, dtype=torch.float64).reshape(shape)
    if first in ("zeros", "ones"):
        return torch.full(shape, float(first == "ones"), dtype=torch.float64)
    if dtype == torch.bool:
        return torch.rand(shape, generator=generator) > 0.5
    if first == "rand":
        return torch.rand(shape, generator=generator, dtype=torch.float64)
    values = torch.randn(shape, generator=generator, dtype=torch.float64)
    if first == "xavier":
        # Glorot's scale: results of a product are then about as large as its left operand.
        rows, columns = (shape[order[-2]], shape[order[-1]]) if len(shape) > 1 else (1, count)
        return values * math.sqrt(2.0 / (rows + columns))
    return values


def _called(
    name: str, arguments: str, shape: tuple[int, ...], generator: torch.Generator, floating: bool
) -> torch.Tensor:
    if name == "randint":
        low, high = _value(f"({arguments})")
        return torch.randint(low, high, shape, generator=generator)
    if name == "unique":
        dim = keywords(arguments)["dim"]
        keys = torch.rand(shape, generator=generator)
        ranks = keys.flatten().argsort().argsort().reshape(shape) if dim is None else keys.argsort(dim).argsort(dim)
        spread = ranks - (ranks.max() + 1) // 2
        return spread / FINENESS if floating else spread
    raise NotationError(f"'{name}({arguments})' is no step of the notation")


def _changed(values: torch.Tensor, step: str) -> torch.Tensor:
    """The values after one step; those that make values have done so."""
    if match := SCALE.fullmatch(step):
        return values * float(match[1])
    changes = {
        "abs": torch.abs,
        "ceil": torch.ceil,
        "shifted": lambda v: v + BESIDE_ZERO,
        "scaled": lambda v: v * MASKED,
        "triu": lambda v: v.triu(1),
    }
    made = step in MAKING or step.startswith(("=", "randint(", "unique("))
    if step not in changes and not made:
        raise NotationError(f"'{step}' is no step of the notation")
    return values if made else changes[step](values)


def _spread(values: torch.Tensor) -> torch.Tensor:
    """The same values, every other element of a larger memory."""
    larger = torch.zeros((*values.shape, 2), dtype=values.dtype)
    larger[..., 0] = values
    return larger[..., 0]
