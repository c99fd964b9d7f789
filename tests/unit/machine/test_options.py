"""Settings of a run: the defaults, every value that is allowed, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from spyre_mlir.errors import InputError
from spyre_mlir.machine.options import MachineOptions


def test_exact_numerics_that_stop_at_the_first_fault_are_the_default() -> None:
    options = MachineOptions()
    assert (options.numerics, options.on_fault, options.nan) == ("exact", "raise", "allow")
    assert (options.overflow, options.partial_sums, options.arithmetic) == ("saturate", "wide", "float32")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("numerics", ["exact", "device", "none"]),
        ("on_fault", ["raise", "warn", "collect"]),
        ("nan", ["allow", "fault"]),
        ("overflow", ["saturate", "nan"]),
        ("partial_sums", ["wide", "rounded"]),
        ("arithmetic", ["float32", "float64"]),
    ],
)
def test_a_setting_takes_these_values_and_no_other(name: str, values: list[str]) -> None:
    for value in values:
        settings: dict[str, Any] = {"numerics": "device", name: value}
        assert getattr(MachineOptions(**settings), name) == value
    wrong: dict[str, Any] = {name: "other"}
    with pytest.raises(InputError, match=f"{name} must be one of {', '.join(values)}, got 'other'"):
        MachineOptions(**wrong)


@pytest.mark.parametrize("setting", [{"overflow": "nan"}, {"partial_sums": "rounded"}, {"arithmetic": "float64"}])
def test_exact_numerics_refuse_each_rule_of_rounding(setting: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="exact numerics never do"):
        MachineOptions(**setting)


@pytest.mark.parametrize("setting", [{"overflow": "nan"}, {"partial_sums": "rounded"}, {"arithmetic": "float64"}])
def test_numerics_none_refuse_each_rule_of_rounding(setting: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="numerics 'none' never do"):
        MachineOptions(numerics="none", **setting)


def test_numerics_none_refuse_to_look_at_results() -> None:
    with pytest.raises(InputError, match="nan='fault' looks at every result, and numerics 'none' at none"):
        MachineOptions(numerics="none", nan="fault")


@pytest.mark.parametrize("setting", [{"on_fault": "collect"}, {"nan": "fault"}])
def test_exact_numerics_take_the_settings_that_round_nothing(setting: dict[str, Any]) -> None:
    assert MachineOptions(**setting).numerics == "exact"
