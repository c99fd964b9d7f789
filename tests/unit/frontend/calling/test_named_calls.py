"""Arrays by name become a call of a program, and its results become arrays by name."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.frontend import import_divided
from spyre_mlir.frontend.calling.named_calls import arrays_by_name, call_of_arrays, types_by_name
from spyre_mlir.frontend.data_sizes.dividing import DividedProgram


class Given(torch.nn.Module):
    def forward(self, x: torch.Tensor, pair: dict[str, torch.Tensor], scale: float = 1.0) -> torch.Tensor:
        return (x[pair["at"]] * pair["by"] * scale)[x[:, 0] > 0]


def divided(x: torch.Tensor, by: torch.Tensor) -> DividedProgram:
    args = x, {"at": torch.tensor([0, 1]), "by": by}, 2.0
    return import_divided("given", torch.export.export(Given(), args))


def test_inputs_have_names_types_and_their_place() -> None:
    program = divided(torch.ones(2, 3), torch.ones(2, 3, dtype=torch.bfloat16))
    types = types_by_name(program.inputs, program.sizes)
    assert [(name, str(kind)) for name, kind in types] == [
        ("x", "tensor<2x3xf32>"),
        ("pair_at", "tensor<2xi64>"),
        ("pair_by", "tensor<2x3xbf16>"),
    ]
    arrays = [np.arange(6.0).reshape(2, 3), np.array([1, 0]), np.full((2, 3), 0.5, np.float32)]
    (x, pair, scale), kwargs = call_of_arrays(program.inputs, program.call_spec.in_spec, arrays)
    assert (x.dtype, pair["at"].tolist(), pair["by"].dtype, scale, kwargs) == (
        torch.float32,
        [1, 0],
        torch.bfloat16,
        2.0,
        {},
    )
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(InputError, match="'pair_at' holds float64, expected whole numbers"):
        call_of_arrays(program.inputs, program.call_spec.in_spec, [arrays[0], np.ones(2), arrays[2]])


class Taking(torch.nn.Module):
    def forward(self, x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return x[n > 0] * 2


def call(x: Any, n: Any) -> tuple[torch.Tensor, torch.Tensor]:
    example = torch.ones(2), torch.ones(2, dtype=torch.int8)
    program = import_divided("taking", torch.export.export(Taking(), example))
    (taken, numbers), _ = call_of_arrays(program.inputs, program.call_spec.in_spec, [x, n])
    return taken, numbers


def test_numbers_that_an_input_cannot_hold_are_refused() -> None:
    fitting = np.ones(2), np.array([127, -128])
    assert call(*fitting)[1].tolist() == [127, -128]
    assert call(np.array([0.5, 2], ">f4"), np.array([1, 0], ">u2"))[0].tolist() == [0.5, 2]
    with pytest.raises(InputError, match="'x' holds complex128, expected real numbers"):
        call(np.ones(2) * 1j, fitting[1])
    for wrong in (128, -129):
        with pytest.raises(InputError, match="'n' holds numbers beyond -128 to 127"):
            call(fitting[0], np.array([0, wrong]))


def test_complex_inputs_are_refused() -> None:
    program = divided(torch.ones(2, 3), torch.ones(2, 3, dtype=torch.complex64))
    with pytest.raises(UnsupportedError, match=r"'pair_by' is complex64\[2, 3\]"):
        types_by_name(program.inputs, program.sizes)


class Named(NamedTuple):
    best: torch.Tensor
    rest: tuple[torch.Tensor, int, None]


class Giving(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> Named:
        rows = x[x > 0]
        return Named(rows * 2, (rows + 1, rows.shape[0], None))


def test_results_have_names_of_their_paths() -> None:
    program = import_divided("giving", torch.export.export(Giving(), (torch.ones(3),)))
    found = arrays_by_name(program.call_spec.out_spec, Giving()(torch.tensor([1.0, -1.0, 3.0])))
    assert {name: value.tolist() for name, value in found.items()} == {
        "best": [2.0, 6.0],
        "rest.0": [2.0, 4.0],
        "rest.1": 2,
    }
