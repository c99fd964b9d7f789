"""Division of launches into steps."""

from pathlib import Path

import pytest

from spyre_mlir.backend.stored import read_bundle
from spyre_mlir.machine.bundle.external_bundle import ExternalLaunch, foreign_program
from spyre_mlir.runtime.steps import CardStep, card_steps
from spyre_mlir.universe import make_context
from tests.paths import DATA


def launches(directory: Path) -> list[ExternalLaunch]:
    stored = read_bundle(directory, make_context())
    return list(foreign_program(stored.bundle, stored.descriptor).steps)


def test_kernels_in_device_memory_are_steps_of_their_own(apart: Path) -> None:
    steps = card_steps(launches(apart))
    assert [(step.first, step.last, step.name) for step in steps] == [(n, n, f"sdsc_{n}") for n in range(3)]
    assert not any(step.obstacle for step in steps)
    # 64 x 128, 128 x 256 and 64 x 256 halves, each whole sticks and an argument of its own
    assert sorted(stretch.elements for stretch in steps[0].stretches) == [64 * 128, 64 * 256, 128 * 256]


def test_scratchpads_tie_kernels(tied: Path) -> None:
    (step,) = card_steps(launches(tied))
    assert (step.first, step.last, step.name) == (0, 2, "sdsc_0-sdsc_2")
    assert len(step.stretches) == 4


def test_addresses_that_are_numbers() -> None:
    from spyre_mlir.cli.run_external import foreign_at

    program = foreign_at(DATA / "superdsc_real/01_add_512x512_32core_hbm.json")
    assert program is not None
    assert "compile with addresses='symbolic'" in CardStep(0, program.steps).obstacle


def test_an_address_outside(apart: Path) -> None:
    step = card_steps(launches(apart))[0]
    low = step.stretches[0].low
    assert step.place(low + 256) == (0, 256)
    with pytest.raises(ValueError, match="lies in no tensor"):
        step.place(step.stretches[-1].high)
