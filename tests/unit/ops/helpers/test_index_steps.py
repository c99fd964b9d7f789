"""Every step gives what torch gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from spyre_mlir.ops.helpers.index_steps import STEPS, result_of, takes

aten: Any = torch.ops.aten
A = torch.tensor([[-7, 0, 5, 12], [3, -1, 8, 2]])
B = torch.tensor([[2, -3, 4, 5], [-6, 1, 7, 3]])
MASK = A > 1
F = torch.tensor([[-2.5, -0.1, 0.5, 1.5], [0.7, 3.3, float("inf"), float("nan")]])
G = torch.tensor([[0.1, -0.3, 3.0, 0.5], [-7.0, 0.7, 2.0, 1.0]])
EDGES = torch.tensor([-1.0, 0.5, 0.7, 2.0])


def in_order(self: Tensor, **given: Any) -> Tensor:
    return torch.argsort(self, stable=True, **given)


CASES: list[tuple[str, dict[str, Any], Callable[..., Tensor]]] = [
    ("add", {"self": A, "other": B, "alpha": 3}, aten.add),
    ("sub", {"self": A, "other": 4, "alpha": 2}, aten.sub),
    ("rsub", {"self": A, "other": 4, "alpha": 2}, aten.rsub),
    ("mul", {"self": A, "other": B}, aten.mul),
    ("neg", {"self": A}, aten.neg),
    ("abs", {"self": A}, aten.abs),
    ("floor_divide", {"self": A, "other": B}, aten.floor_divide),
    ("div", {"self": A, "other": B, "rounding_mode": "trunc"}, aten.div),
    ("div", {"self": A, "other": B, "rounding_mode": "floor"}, aten.div),
    ("remainder", {"self": A, "other": B}, aten.remainder),
    ("fmod", {"self": A, "other": B}, aten.fmod),
    *(("sign", {"self": signed}, aten.sign) for signed in (A, MASK)),
    ("pow", {"self": A, "exponent": 3}, aten.pow),
    ("pow", {"self": MASK, "exponent": 2}, aten.pow),
    *((name, {"self": A, "other": 70}, getattr(aten, name)) for name in ("__lshift__", "__rshift__")),
    *((f"bitwise_{n}_shift", {"self": A, "other": B}, getattr(aten, f"bitwise_{n}_shift")) for n in ("left", "right")),
    ("div", {"self": A, "other": B, "rounding_mode": None}, aten.div),
    *((n, {"self": F, "other": G, "alpha": 1}, getattr(aten, n)) for n in ("add", "sub", "rsub")),
    *((n, {"self": F, "other": G}, getattr(aten, n)) for n in ("mul", "remainder", "fmod", "minimum", "maximum")),
    *(("div", {"self": F, "other": G, "rounding_mode": mode}, aten.div) for mode in (None, "floor", "trunc")),
    ("div", {"self": F, "other": 3.0}, aten.div),
    ("mul", {"self": F, "other": 0.1}, aten.mul),
    ("mul", {"self": A, "other": 0.1}, aten.mul),
    ("add", {"self": A, "other": F, "alpha": 1}, aten.add),
    ("floor_divide", {"self": F, "other": G}, aten.floor_divide),
    *((name, {"self": F}, getattr(aten, name)) for name in ("floor", "ceil", "round", "trunc", "neg", "abs")),
    *((name, {"self": F, "other": 0.7}, getattr(aten, name)) for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    ("gt", {"self": A, "other": 0.5}, aten.gt),
    ("clamp", {"self": F, "min": -0.3, "max": 2.7}, aten.clamp),
    ("where", {"condition": MASK, "self": F, "other": G}, aten.where),
    ("full", {"size": (2,), "fill_value": 0.3}, torch.full),
    ("logical_not", {"self": G}, aten.logical_not),
    *(("bucketize", {"self": F, "boundaries": EDGES, "right": right}, aten.bucketize) for right in (False, True)),
    ("searchsorted", {"sorted_sequence": EDGES, "self": F}, aten.searchsorted),
    ("searchsorted", {"sorted_sequence": A.sort()[0], "self": B[:, :3], "right": True}, aten.searchsorted),
    ("argmax", {"self": F, "dim": 1, "keepdim": True}, aten.argmax),
    ("argmax", {"self": A}, aten.argmax),
    ("argmin", {"self": MASK.long(), "dim": 1}, aten.argmin),
    *((name, {"self": A, "dim": (1,), "keepdim": True}, getattr(aten, name)) for name in ("amax", "amin")),
    *((name, {"self": MASK}, getattr(aten, name)) for name in ("any", "all")),
    *(
        ("sort", {"self": A, "dim": 1, "descending": down}, lambda self, **a: torch.sort(self, **a)[0])
        for down in (False, True)
    ),
    *(("argsort", {"self": MASK, "dim": -1, "descending": d}, in_order) for d in (False, True)),
    ("argsort", {"self": A[0, 0]}, aten.argsort),
    ("index", {"self": A, "indices": (torch.tensor([1, -1]), torch.tensor([0, 3]))}, aten.index),
    ("index", {"self": A, "indices": (None, torch.tensor([[0, -4]]))}, aten.index),
    ("index_select", {"self": A, "dim": 1, "index": torch.tensor([3, 0])}, aten.index_select),
    ("gather", {"self": A, "dim": -1, "index": torch.tensor([[3, 0]])}, aten.gather),
    ("gather", {"self": F, "dim": 0, "index": torch.tensor([[1, 0, 1]])}, aten.gather),
    ("embedding", {"weight": A, "indices": torch.tensor([[1, 0], [1, 1]])}, aten.embedding),
    ("flatten", {"self": A[None], "start_dim": 1, "end_dim": -1}, aten.flatten),
    ("flatten", {"self": A[:0, None]}, aten.flatten),
    ("flatten", {"self": A[:0, None], "start_dim": 1}, aten.flatten),
    ("_unsafe_view", {"self": A, "size": (8,)}, aten._unsafe_view),
    ("t", {"self": A}, aten.t),
    ("constant_pad_nd", {"self": A, "pad": (1, -2, 0, 1), "value": 7}, aten.constant_pad_nd),
    ("repeat_interleave", {"self": A, "repeats": 2, "dim": 1}, aten.repeat_interleave),
    ("repeat_interleave", {"self": A, "repeats": 2}, aten.repeat_interleave),
    ("clamp", {"self": A, "min": -2, "max": 4}, aten.clamp),
    ("clamp_min", {"self": A, "min": -2}, aten.clamp_min),
    ("clamp_max", {"self": A, "max": 4}, aten.clamp_max),
    *((name, {"self": A, "other": B}, getattr(aten, name)) for name in ("minimum", "maximum")),
    *((name, {"self": A, "other": 3}, getattr(aten, name)) for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *((name, {"self": A, "other": B}, getattr(aten, name)) for name in ("bitwise_and", "bitwise_or", "bitwise_xor")),
    ("bitwise_not", {"self": A}, aten.bitwise_not),
    ("bitwise_not", {"self": MASK}, aten.bitwise_not),
    ("logical_and", {"self": A, "other": MASK}, aten.logical_and),
    ("logical_or", {"self": A, "other": MASK}, aten.logical_or),
    ("logical_xor", {"self": A, "other": MASK}, aten.logical_xor),
    ("logical_not", {"self": A}, aten.logical_not),
    ("where", {"condition": MASK, "self": A, "other": B}, aten.where),
    ("masked_fill", {"self": A, "mask": MASK, "value": 9}, aten.masked_fill),
    ("cumsum", {"self": MASK, "dim": 1}, aten.cumsum),
    ("cumsum", {"self": A[0, 0], "dim": 0}, aten.cumsum),
    ("sum", {"self": MASK}, aten.sum),
    ("sum", {"self": A[0, 0], "dim": (-1,)}, aten.sum),
    ("sum", {"self": A, "dim": (-1,), "keepdim": True}, aten.sum),
    ("view", {"self": A, "size": (4, -1)}, aten.view),
    ("reshape", {"self": A.T, "shape": (2, 4)}, aten.reshape),
    ("unsqueeze", {"self": A, "dim": -1}, aten.unsqueeze),
    ("squeeze", {"self": A[None, :, :, None]}, aten.squeeze),
    ("squeeze", {"self": A[None, :, :, None], "dim": (0, 1)}, aten.squeeze),
    ("permute", {"self": A, "dims": (1, 0)}, aten.permute),
    ("transpose", {"self": A, "dim0": 0, "dim1": 1}, aten.transpose),
    ("expand", {"self": A[:, :1], "size": (3, -1, 2)}, aten.expand),
    ("flip", {"self": A, "dims": (0, 1)}, aten.flip),
    ("roll", {"self": A, "shifts": (1, 2), "dims": (0, 1)}, aten.roll),
    ("roll", {"self": A, "shifts": (3,), "dims": ()}, aten.roll),
    ("repeat", {"self": A, "repeats": (2, 1, 3)}, aten.repeat),
    ("slice", {"self": A, "end": 1}, aten.slice),
    ("slice", {"self": A, "dim": -1, "start": 1, "end": 9223372036854775807, "step": 2}, aten.slice),
    ("select", {"self": A, "dim": 1, "index": -1}, aten.select),
    ("cat", {"tensors": (A, B), "dim": -1}, aten.cat),
    ("stack", {"tensors": (A, B), "dim": 1}, aten.stack),
    *((name, {"self": A}, getattr(aten, name)) for name in ("alias", "detach", "contiguous", "clone")),
    ("lift_fresh_copy", {"self": A}, aten.lift_fresh_copy),
    ("arange", {"end": 7}, torch.arange),
    ("arange", {"start": 7, "end": -2, "step": -3}, torch.arange),
    ("full", {"size": (2, 3), "fill_value": 4}, torch.full),
    ("full_like", {"self": A, "fill_value": 4}, aten.full_like),
    ("zeros", {"size": (2, 3)}, lambda size: torch.zeros(size, dtype=torch.int64)),
    ("ones", {"size": (2, 3)}, lambda size: torch.ones(size, dtype=torch.int64)),
    ("new_full", {"self": A, "size": (2, 1), "fill_value": 4}, aten.new_full),
    ("new_zeros", {"self": A, "size": (2, 1)}, aten.new_zeros),
    ("new_ones", {"self": F, "size": (3,)}, aten.new_ones),
    ("fill", {"self": A, "value": 4}, aten.fill),
    ("slice_scatter", {"self": A, "src": B[:, :2], "dim": 1, "start": 1, "end": 3, "step": 1}, aten.slice_scatter),
    ("slice_scatter", {"self": F, "src": G[:1], "start": 1}, aten.slice_scatter),
    ("select_scatter", {"self": A, "src": B[:, 0], "dim": 1, "index": -1}, aten.select_scatter),
    ("copy", {"self": A, "src": B[0]}, aten.copy),
    ("zeros_like", {"self": A}, aten.zeros_like),
    ("ones_like", {"self": A}, aten.ones_like),
]


def as_arrays(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(as_arrays, value))
    return value.numpy() if isinstance(value, Tensor) else value


@pytest.mark.parametrize("number", range(len(CASES)))
def test_step(number: int) -> None:
    name, given, function = CASES[number]
    expected = function(**given)
    kind = torch.empty(0, dtype=expected.dtype).numpy().dtype
    found = result_of(name, {key: as_arrays(value) for key, value in given.items()}, kind)
    assert found.dtype == kind
    torch.testing.assert_close(torch.from_numpy(found.copy()), expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("value", [-1e30, -1.5, 0.99999994, 2.5, float("inf"), float("nan")])
@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
def test_floats_become_integers_as_in_eager(value: float, kind: torch.dtype) -> None:
    given = torch.tensor([value])
    found = result_of("_to_copy", {"self": given.numpy()}, torch.empty(0, dtype=kind).numpy().dtype)
    assert found.tolist() == given.to(kind).tolist()


@pytest.mark.parametrize("kind", [torch.bool, torch.uint8, torch.int16, torch.int32, torch.int64])
def test_conversions_wrap_around(kind: torch.dtype) -> None:
    many = torch.tensor([0, 255, 256, -1, 40000, 2**31, 2**32 + 5])
    for name in ("to", "_to_copy"):
        found = torch.from_numpy(result_of(name, {"self": many.numpy()}, torch.empty(0, dtype=kind).numpy().dtype))
        torch.testing.assert_close(found, many.to(kind).to(found.dtype))


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("view", {"self", "size"}, True),
        ("view", {"self"}, False),  # of another type
        ("to", {"self", "other"}, True),
        ("full", {"size", "fill_value"}, True),
        ("full", {"size", "fill_value", "names"}, False),
        ("slice", {"self"}, True),
        ("select", {"self", "dim"}, False),
    ],
)
def test_steps_take_the_arguments_of_one_overload(name: str, given: set[str], expected: bool) -> None:
    assert takes(name, given) is expected


def test_every_step_is_compared() -> None:
    assert set(STEPS) - {name for name, *_ in CASES} == {"to", "_to_copy"}
