"""Errors of launches: what each adds, what it loses, and that the two runs end together."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import torch

import spyre_mlir
from spyre_mlir.backend.stored import read_bundle
from spyre_mlir.debug.error_walk import KernelError, kernel_errors, launches_of, relative_error
from spyre_mlir.debug.stored_runs import stored_program
from spyre_mlir.errors import FaultKind, InputError, MachineFault
from spyre_mlir.universe import make_context

GROWS = 1e6


class Growing(torch.nn.Module):
    """The third kernel overflows: the square of numbers up to 3e6 is beyond 8.6e9."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        small = x * 1e-12
        h = x * GROWS
        return torch.sqrt(h * h) + small


X = torch.linspace(-3, 3, 4 * 64).reshape(4, 64)


def errors_of(model: torch.nn.Module, folder: Path, x: torch.Tensor = X) -> list[KernelError]:
    directory = spyre_mlir.compile(model, (x,)).save(folder / "bundle")
    stored = read_bundle(directory, make_context())
    program = stored_program(stored)
    launches = launches_of(stored.bundle, stored.descriptor, program.host)
    return kernel_errors(program, [x.double().numpy()], launches, stored.manifest.extents)


def test_the_launch_that_overflows_is_the_one_that_adds_the_error(tmp_path: Path) -> None:
    found = errors_of(Growing(), tmp_path)
    by_count = [one.overflows for one in found]
    beyond = int((X.abs() * GROWS > np.sqrt(2.0**32 * (2 - 2.0**-8))).sum())
    assert sorted(by_count)[-1] == beyond > 0
    (worst,) = [one for one in found if one.overflows]
    assert worst.function == "mul"
    assert worst.before < 2e-3 < worst.error
    assert worst.added == worst.error - worst.before
    assert sum(one.lost for one in found) == 0


def test_small_numbers_that_vanish_are_counted(tmp_path: Path) -> None:
    found = errors_of(Growing(), tmp_path)
    smallest = 2.0**-31 * (1 + 2.0**-9)
    gone = int((X.abs() * 1e-12 < smallest / 2).sum())
    assert max(one.underflows for one in found) >= gone > 0


def test_rounding_alone_stays_within_the_format(tmp_path: Path) -> None:
    (found,) = errors_of(torch.nn.ReLU(), tmp_path)
    assert (found.file, found.function) == ("sdsc_0.json", "relufwd")
    assert 0 < found.before < 2**-10
    assert found.error <= found.before * 1.01
    assert (found.overflows, found.underflows, found.lost) == (0, 0, 0)


def test_the_second_run_ends_with_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = threading.active_count()
    errors_of(torch.nn.ReLU(), tmp_path)
    assert threading.active_count() == before
    from spyre_mlir.debug import error_walk

    def broken(*_: object) -> KernelError:
        raise MachineFault(FaultKind.HOST_STEP, "stop")

    monkeypatch.setattr(error_walk, "_error", broken)
    with pytest.raises(MachineFault, match="stop"):
        errors_of(torch.nn.ReLU(), tmp_path / "again")
    assert threading.active_count() == before


def test_a_program_that_runs_more_than_was_told_is_refused(tmp_path: Path) -> None:
    directory = spyre_mlir.compile(torch.nn.ReLU(), (X,)).save(tmp_path / "bundle")
    stored = read_bundle(directory, make_context())
    with pytest.raises(InputError, match="runs more launches than its files tell"):
        kernel_errors(stored_program(stored), [X.double().numpy()], iter(()), {})


@pytest.mark.parametrize(
    ("got", "wanted", "error"),
    [
        ([3.0, 4.0], [3.0, 4.0], 0.0),
        ([3.0, 0.0], [0.0, 4.0], 1.25),  # sqrt(9 + 16) over 4
        ([2.0], [0.0], 2.0),
        ([1.0, np.nan, np.inf], [1.0, 5.0, 5.0], 0.0),
        ([], [], 0.0),
    ],
)
def test_the_error_is_relative_to_what_was_wanted(got: list[float], wanted: list[float], error: float) -> None:
    assert relative_error(np.array(got), np.array(wanted)) == pytest.approx(error)
