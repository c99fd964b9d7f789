"""Conditions that an export takes for granted."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.symbolic import guards
from spyre_mlir.frontend.symbolic.guards import guards_of
from spyre_mlir.frontend.symbolic.sizes import Sizes


class Checked(nn.Module):
    def forward(self, x: dict[str, list[torch.Tensor]], y: torch.Tensor) -> Any:
        rows = x["parts"][1].shape[0]
        torch._check(rows % 4 == 0)
        torch._check(rows + y.shape[1] <= 100)
        return x["parts"][0] + 1, x["parts"][1] * 2, y + 1


SHAPES: Any = ({"parts": [{}, {0: Dim.AUTO}]}, {1: Dim.AUTO})
EXPORTED = torch.export.export(
    Checked(), ({"parts": [torch.ones(3), torch.ones(8, 4)]}, torch.ones(2, 6)), dynamic_shapes=SHAPES
)


def test_conditions_are_on_symbols() -> None:
    found = guards_of(EXPORTED, Sizes.of(EXPORTED))
    assert "s0 % 4 == 0" in found
    assert any(text.replace(" ", "") in ("s0+s1<=100", "s1+s0<=100") for text in found)


def test_leaves_of_a_strict_export_have_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "guard_codes", lambda _: ["L['flat_args'][1].size()[0] != L['flat_args'][2].size()[1]"])
    assert guards_of(EXPORTED, Sizes.of(EXPORTED)) == ["s0 != s1"]


@pytest.mark.parametrize("code", ["L['y'].stride()[0] == 1", "L['z'].size()[0] == 1", "f(L['y'].size()[1])", "=="])
def test_another_condition_is_refused(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "guard_codes", lambda _: [code])
    with pytest.raises(UnsupportedError, match="which is no condition on sizes"):
        guards_of(EXPORTED, Sizes.of(EXPORTED))


def test_what_held_at_export_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "guard_codes", lambda _: ["L['y'].size()[0] == 2"])
    assert guards_of(EXPORTED, Sizes.of(EXPORTED)) == []


@pytest.mark.parametrize(("function", "of_torch"), [("max", "torch.sym_max"), ("min", "torch.sym_min")])
def test_functions_of_torch_on_sizes_are_pythons(function: str, of_torch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    extent = "L['x']['parts'][1].size()[0]"
    monkeypatch.setattr(guards, "guard_codes", lambda _: [f"{of_torch}(1, {extent} // 4) == {extent} // 4"])
    assert guards_of(EXPORTED, Sizes.of(EXPORTED)) == [f"{function}(1, s0 // 4) == s0 // 4"]
