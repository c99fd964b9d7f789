"""Directories of steps: read back by the independent reader; tensors on their way."""

from pathlib import Path

import numpy as np
import pytest

from spyre_mlir.machine.memory.choice import memory_for
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.runtime.steps import card_steps
from spyre_mlir.runtime.writing import read_results, write_arguments, write_step
from tests.oracles.bundle_reader import argument_count, read_bundle
from tests.unit.runtime.test_steps import launches

DEVICE = MachineOptions(numerics="device")


def test_a_steps_bundle_has_the_addresses_of_the_program(tied: Path, tmp_path: Path) -> None:
    """Given arguments at the addresses that the stretches have, the launches are those of the program."""
    (step,) = card_steps(launches(tied))
    files = {launch.op.sdsc_filename.data: tied for launch in step.launches}
    write_step(step, tmp_path, files)
    text = (tmp_path / "bundle.mlir").read_text()
    assert argument_count(text) == len(step.stretches)
    assert "device_mem_allocate" not in text
    found = read_bundle(text, [stretch.low for stretch in step.stretches])
    assert [launch.symbols for launch in found] == [dict(launch.symbols) for launch in step.launches]
    for name in files:
        assert (tmp_path / name).read_bytes() == (tied / name).read_bytes()


def test_small_numbers_are_rounded_for_the_machine_too(apart: Path, tmp_path: Path) -> None:
    step = card_steps(launches(apart))[0]
    memory = memory_for(DEVICE)
    for number, stretch in enumerate(step.stretches):
        memory.add_region(f"{number}", stretch.low, stretch.high - stretch.low)
    first = step.stretches[0]
    addresses = np.array([first.low, first.low + 2])
    small = 1.5 * 2.0**-24  # DLFloat16 has it; a half has only multiples of 2**-24
    memory.store(addresses, np.array([small, 3.0]), first.format)
    assert write_arguments(step, tmp_path, memory) == ""
    sent = np.load(tmp_path / "argument_0.npy")
    assert sent.dtype == np.float16
    assert sent[:3].tolist() == [2.0**-23, 3.0, 0.0]
    assert memory.load(addresses, first.format)[0].tolist() == [2.0**-23, 3.0]
    memory.store(addresses, np.array([1e6, 3.0]), first.format)
    assert write_arguments(step, tmp_path, memory) == (
        "1 numbers of an input are beyond float16, which is what a transfer takes"
    )


def test_results_that_are_missing_or_of_another_size(apart: Path, tmp_path: Path) -> None:
    step = card_steps(launches(apart))[0]
    with pytest.raises(ValueError, match=r"the card left no result_0\.npy"):
        read_results(step, tmp_path, memory_for(DEVICE))
    np.save(tmp_path / "result_0.npy", np.zeros(3, np.float16))
    with pytest.raises(ValueError, match=rf"has shape \[3\], expected \[{step.stretches[0].elements}\]"):
        read_results(step, tmp_path, memory_for(DEVICE))
