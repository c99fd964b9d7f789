"""Fillings of a size and strides, and arithmetic with them, in the place of calls that draw."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from torch.fx import Node

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.arguments import bind
from spyre_mlir.frontend.capture.call_writer import value_of
from spyre_mlir.frontend.capture.random_draws.recurrent import NETWORKS, by_layers
from spyre_mlir.frontend.capture.random_draws.writer import ORDER, DrawWriter, in_row_major_order
from spyre_mlir.frontend.locations import place_of

_ATEN = torch.ops.aten
_SELU = 1.7580993408473766  # the slope of what alpha dropout drops to, as torch has it
Rewrite = Callable[[Node, DrawWriter], "Node | list[Node]"]


def given_to(node: Node) -> dict[str, Any]:
    """Return the arguments of a call by name, defaults filled in."""
    return {name: argument.value for name, argument in bind(node).items()}


def _numbers(given: Mapping[str, Any], names: tuple[str | float, ...]) -> list[Any]:
    return [given[name] if isinstance(name, str) else name for name in names]


def _in_place(name: str, *names: str | float) -> Rewrite:
    """A filling of a tensor that exists, with the names of its numbers, or with numbers."""

    def rewritten(node: Node, write: DrawWriter) -> Node:
        given = given_to(node)
        return write(_ATEN.copy_.default, given["self"], write.draw(name, given["self"], *_numbers(given, names)))

    return rewritten


def _like(name: str, *names: str | float) -> Rewrite:
    """A filling of a new tensor, with the names of its numbers, or with numbers."""

    def rewritten(node: Node, write: DrawWriter) -> Node:
        given = given_to(node)
        return write.draw(name, given["self"], *_numbers(given, names), form=value_of(node))

    return rewritten


def _new(name: str, *names: str | float) -> Rewrite:
    """A filling of a new tensor of a size, with the names of its numbers, or with numbers."""

    def rewritten(node: Node, write: DrawWriter) -> Node:
        given = given_to(node)
        return write.draw(name, node, *_numbers(given, names), form=value_of(node), size=given["size"])

    return rewritten


def _bernoulli(node: Node, write: DrawWriter) -> Node:
    """Draws in row-major order, whatever the order of its operand is."""
    given = given_to(node)
    return write.draw("bernoulli", given["self"], given["p"], size=value_of(given["self"]).shape)


def _bernoulli_by_tensor(node: Node, write: DrawWriter) -> Node:
    given = given_to(node)
    target = given["self"]
    if not in_row_major_order(value_of(target)):
        raise UnsupportedError(f"{node.target} fills a tensor out of order", where=place_of(node), hint=ORDER)
    chances = write(_ATEN.expand.default, given["p"], list(value_of(target).shape))
    return write(_ATEN.copy_.default, target, write(_ATEN.bernoulli.default, chances))


def mask(x: Node, p: float, write: DrawWriter, *, features: bool = False) -> Node:
    """Write what dropout keeps, as eager draws it: 1 with probability 1 - p, else 0; of whole features if asked."""
    form = torch.empty_like(value_of(x))
    size = [extent if dim < 2 else 1 for dim, extent in enumerate(form.shape)] if features else None
    return write.draw("bernoulli", x, 1.0 - p, form=form, size=size)


def _dropout(*, features: bool = False, alpha: bool = False, in_place: bool = False) -> Rewrite:
    multiply, add = (_ATEN.mul_.Tensor, _ATEN.add_.Tensor) if in_place else (_ATEN.mul.Tensor, _ATEN.add.Tensor)

    def rewritten(node: Node, write: DrawWriter) -> Node:
        x, p = cast(Node, node.args[0]), cast(float, node.args[1])
        if p == 1:  # torch draws nothing
            return write(multiply, x, write(_ATEN.zeros.default, [], dtype=value_of(x).dtype))
        noise = mask(x, p, write, features=features)
        if not alpha:
            return write(multiply, x, write(_ATEN.div.Scalar, noise, 1.0 - p))
        scale = 1.0 / math.sqrt((_SELU * _SELU * p + 1) * (1 - p))
        shift = write(_ATEN.mul.Scalar, write(_ATEN.add.Scalar, noise, -1), _SELU * scale)
        shift = write(_ATEN.add.Scalar, shift, _SELU * scale * p)
        return write(add, write(multiply, x, write(_ATEN.mul.Scalar, noise, scale)), shift)

    return rewritten


def _native_dropout(node: Node, write: DrawWriter) -> list[Node]:
    """Dropout with what it keeps; it draws for a chance of 1 too."""
    given = given_to(node)
    x, p = given["input"], given["p"]
    noise = mask(x, p, write)
    kept = write(_ATEN.mul.Scalar, write(_ATEN.mul.Tensor, x, noise), 0.0 if p == 1 else 1.0 / (1.0 - p))
    return [kept, write(_ATEN.ne.Scalar, noise, 0.0)]


def _attention(node: Node, write: DrawWriter) -> Node:
    """Attention with dropout, in the parts that torch runs on the CPU."""
    given = given_to(node)
    query, key, value, p = given["query"], given["key"], given["value"], given["dropout_p"]
    if given["enable_gqa"]:
        heads = value_of(query).shape[-3]
        key, value = (
            write(_ATEN.repeat_interleave.self_int, t, heads // value_of(t).shape[-3], -3) for t in (key, value)
        )
    scale = given["scale"] or 1.0 / math.sqrt(value_of(query).shape[-1])
    root = math.sqrt(abs(scale))
    turned = write(_ATEN.mul.Scalar, write(_ATEN.transpose.int, key, -2, -1), root)
    weights = write(_ATEN.matmul.default, write(_ATEN.mul.Scalar, query, math.copysign(root, scale)), turned)
    weights = write(_ATEN._safe_softmax.default, _masked(weights, given, write), -1)  # 0 where a row is all hidden
    if p == 1:
        kept = write(_ATEN.mul.Scalar, weights, 0.0)
    else:
        kept = write(_ATEN.mul.Tensor, weights, write(_ATEN.div.Scalar, mask(weights, p, write), 1.0 - p))
    return write(_ATEN.matmul.default, kept, value)


def _masked(weights: Node, given: Mapping[str, Any], write: DrawWriter) -> Node:
    """The weights of attention before the softmax, with what is hidden at minus infinity."""
    hidden = given["attn_mask"]
    if given["is_causal"]:
        rows, columns = value_of(weights).shape[-2:]
        hidden = write(_ATEN.tril.default, write(_ATEN.ones.default, [rows, columns], dtype=torch.bool))
    if hidden is None:
        return weights
    if value_of(hidden).dtype is torch.bool:
        return write(_ATEN.masked_fill.Scalar, weights, write(_ATEN.logical_not.default, hidden), -math.inf)
    return write(_ATEN.add.Tensor, weights, hidden)


REWRITES: dict[Any, Rewrite] = {
    _ATEN.uniform_.default: _in_place("uniform", "from", "to"),
    _ATEN.normal_.default: _in_place("normal", "mean", "std"),
    _ATEN.bernoulli_.float: _in_place("bernoulli", "p"),
    _ATEN.bernoulli_.Tensor: _bernoulli_by_tensor,
    _ATEN.exponential_.default: _in_place("exponential", "lambd"),
    _ATEN.geometric_.default: _in_place("geometric", "p"),
    _ATEN.cauchy_.default: _in_place("cauchy", "median", "sigma"),
    _ATEN.log_normal_.default: _in_place("log_normal", "mean", "std"),
    _ATEN.random_.default: _in_place("integers"),
    _ATEN.random_.to: _in_place("integers", 0, "to"),
    getattr(_ATEN.random_, "from"): _in_place("integers", "from", "to"),
    # Of the functional forms, as in a program that was taken apart before, a result lies as its operand does.
    _ATEN.uniform.default: _like("uniform", "from", "to"),
    _ATEN.normal_functional.default: _like("normal", "mean", "std"),
    _ATEN.exponential.default: _like("exponential", "lambd"),
    _ATEN.geometric.default: _like("geometric", "p"),
    _ATEN.cauchy.default: _like("cauchy", "median", "sigma"),
    _ATEN.log_normal.default: _like("log_normal", "mean", "std"),
    _ATEN.random.default: _like("integers"),
    _ATEN.random.to: _like("integers", 0, "to"),
    getattr(_ATEN.random, "from"): _like("integers", "from", "to"),
    _ATEN.bernoulli.p: _bernoulli,
    _ATEN.rand_like.default: _like("uniform", 0.0, 1.0),
    _ATEN.randn_like.default: _like("normal", 0.0, 1.0),
    _ATEN.randint_like.default: _like("integers", 0, "high"),
    _ATEN.randint_like.low_dtype: _like("integers", "low", "high"),
    _ATEN.dropout.default: _dropout(),
    _ATEN.dropout_.default: _dropout(in_place=True),
    _ATEN.feature_dropout.default: _dropout(features=True),
    _ATEN.feature_dropout_.default: _dropout(features=True, in_place=True),
    _ATEN.alpha_dropout.default: _dropout(alpha=True),
    _ATEN.alpha_dropout_.default: _dropout(alpha=True, in_place=True),
    _ATEN.feature_alpha_dropout.default: _dropout(features=True, alpha=True),
    _ATEN.feature_alpha_dropout_.default: _dropout(features=True, alpha=True, in_place=True),
    _ATEN.native_dropout.default: _native_dropout,
    _ATEN.scaled_dot_product_attention.default: _attention,
    **dict.fromkeys(NETWORKS, by_layers),
}
# A new tensor of real numbers says already what it fills.
_OF_COMPLEX: dict[Any, Rewrite] = {
    _ATEN.normal.float_float: _new("normal", "mean", "std"),
    _ATEN.rand.default: _new("uniform", 0.0, 1.0),
    _ATEN.randn.default: _new("normal", 0.0, 1.0),
}


def rewrite_of(node: Node) -> Rewrite | None:
    """Return what writes a filling in the place of a call that draws; None if the call says itself what it fills."""
    value = node.meta.get("val")
    new = _OF_COMPLEX.get(node.target) if isinstance(value, torch.Tensor) and value.is_complex() else None
    return REWRITES.get(node.target, new)
