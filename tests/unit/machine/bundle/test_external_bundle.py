"""Bundles that come with their public files only: the published files, against numpy and the independent decoder."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spyre_mlir.backend.read import read_json
from spyre_mlir.backend.stored import read_bundle
from spyre_mlir.cli.run_external import foreign_at
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.errors import InputError, MachineFault
from spyre_mlir.machine.bundle.external_bundle import (
    ExternalLaunch,
    ExternalProgram,
    foreign_program,
    random_value,
    run_foreign,
    single,
)
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.universe import make_context
from tests.oracles.superdsc_decoder import Decoder
from tests.paths import DATA
from tests.unit.machine.programs import load

EXACT = MachineOptions()
REAL: dict[str, Callable[..., Any]] = {
    "01_add_512x512_32core_hbm": lambda a, b: a + b,
    "02_ReStickifyOpHBM_512x512": lambda a: a,
    "03_batchmatmul_512_mb32": lambda a, b: a @ b.T,
    "06_ReStickifyOpLx_lx": lambda a: a,  # what its scratchpads hold is an input
}


def program_of(name: str) -> ExternalProgram:
    program = foreign_at(DATA / f"superdsc_real/{name}.json")
    assert program is not None
    return program


def values_of(program: ExternalProgram) -> dict[str, Any]:
    random = np.random.default_rng(1)
    return {tensor.name: random_value(tensor, random) for tensor in program.inputs}


@pytest.mark.parametrize("name", REAL)
def test_a_published_file_runs_from_disk(name: str) -> None:
    """The result equals numpy; so does what the independent decoder finds in memory, of inputs and output."""
    program, decoder = program_of(name), Decoder(load(name))
    values = values_of(program)
    expected = REAL[name](*values.values())
    found: dict[int, Any] = {}

    def watch(_: ExternalLaunch, memory: Memory) -> None:
        for operand in decoder.operands:
            array = np.full([n for d, n in decoder.sizes.items() if d in operand.dims], np.nan)
            for core in decoder.cores:
                coords, addresses = decoder.addresses(operand.index, core)
                pad = memory.scratchpad_address(core, 0) if operand.component == "lx" else 0
                read, written = memory.load(addresses + pad, operand.data_format)
                assert written.all()
                array[tuple(coords[d] for d in decoder.sizes if d in coords)] = read
            found[operand.index] = array

    (result,) = run_foreign(program, values, EXACT, watch).values()
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-12)
    for tensor in program.inputs:
        np.testing.assert_array_equal(found[tensor.index], values[tensor.name])
    np.testing.assert_allclose(found[decoder.output], expected, rtol=0, atol=1e-12)


def test_bytes_by_hand() -> None:
    """512 x 512 elements of two bytes each: two tensors in, one out."""
    assert program_of("01_add_512x512_32core_hbm").traffic(0) == (2 * 512 * 512 * 2, 512 * 512 * 2)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory like the published `10_bundle.mlir`'s, of published files: transpose, add, add, transpose."""
    (tmp_path / "bundle.mlir").write_text((DATA / "superdsc_real/10_bundle.mlir").read_text())
    restickify = (DATA / "superdsc_real/02_ReStickifyOpHBM_512x512.json").read_text()
    add = (DATA / "superdsc_real/01_add_512x512_32core_hbm.json").read_text()
    (tmp_path / "sdsc_0_ReStickifyOpHBM.json").write_text(restickify)
    (tmp_path / "sdsc_1_add.json").write_text(add)
    (tmp_path / "sdsc_2_add.json").write_text(add)
    (tmp_path / "sdsc_3_ReStickifyOpHBM.json").write_text(restickify)
    return tmp_path


def test_inputs_and_results_are_found(directory: Path) -> None:
    """The first file writes at 0xc00000000, where the adds read; both adds write the same place."""
    program = foreign_at(directory)
    assert program is not None
    assert [t.name for t in program.inputs] == ["sdsc_0_ReStickifyOpHBM.Tensor0", "sdsc_1_add.Tensor1"]
    assert [t.address for t in program.inputs] == [0, 0x400000000]
    assert [t.name for t in program.results] == ["sdsc_2_add.Tensor2", "sdsc_3_ReStickifyOpHBM.Tensor1"]
    values = values_of(program)
    results = run_foreign(program, values, EXACT)
    left, right = values.values()
    np.testing.assert_array_equal(results["sdsc_3_ReStickifyOpHBM.Tensor1"], left)
    np.testing.assert_array_equal(results["sdsc_2_add.Tensor2"], left + right)


def test_as_the_device_has_it() -> None:
    """A tensor of [sticks, lanes]: every stick of the published restickify's input by its place in memory."""
    program = program_of("02_ReStickifyOpHBM_512x512")
    (tensor,) = program.inputs
    logical = values_of(program)[tensor.name]
    assert tensor.device_shape == (4096, 64)
    # Device order (mb, out), sticks along out: stick (column of sticks, row) holds 64 elements of a row.
    device = logical.reshape(512, 8, 64).transpose(1, 0, 2).reshape(4096, 64)
    (result,) = run_foreign(program, {tensor.name: device}, EXACT).values()
    np.testing.assert_array_equal(result, logical)


def test_a_value_of_another_shape_is_refused() -> None:
    program = program_of("02_ReStickifyOpHBM_512x512")
    name = program.inputs[0].name
    with pytest.raises(InputError, match=r"takes shape \(512, 512\), or \(4096, 64\) as the device has it, got \(3,\)"):
        run_foreign(program, {name: np.zeros(3)}, EXACT)
    with pytest.raises(InputError, match="has no value"):
        run_foreign(program, {}, EXACT)


SYMBOLIC = """
func.func @sdsc_bundle(%a: !sdscbundle.input_arg<index>, %b: !sdscbundle.input_arg<index>) {
  %x = sdscbundle.input_arg_extract value from %a : !sdscbundle.input_arg<index> -> index
  %y = sdscbundle.input_arg_extract value from %b : !sdscbundle.input_arg<index> -> index
  sdscbundle.sdsc_execute (%x, %y) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2]}
  sdscbundle.sdsc_execute (%y, %x) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2]}
  func.return
}
"""


def test_symbolic_addresses(tmp_path: Path) -> None:
    """There and back: the second run of the file reads what the first one wrote, and writes where that one read."""
    view = describe(read_json(DATA / "superdsc_worked/a1_add_128x256_1core.json"))
    one, two = (replace(view.operands[n], start=(s,), symbolic=True) for n, s in ((0, "-1"), (2, "-2")))
    both = replace(view, operands=(one, one, two))
    (tmp_path / "bundle.mlir").write_text(SYMBOLIC)
    (tmp_path / "sdsc_0.json").write_text("{}")
    stored = read_bundle(tmp_path, make_context())
    program = foreign_program(stored.bundle, lambda _: both)
    assert [t.name for t in program.inputs] == ["sdsc_0.Tensor0"]
    assert [t.name for t in program.results] == ["sdsc_0#2.Tensor2"]
    (value,) = values_of(program).values()
    (result,) = run_foreign(program, {"sdsc_0.Tensor0": value}, EXACT).values()
    np.testing.assert_array_equal(result, 4 * value)
    assert program.arguments == 2


def test_what_nobody_wrote_is_an_input(directory: Path) -> None:
    program = foreign_at(directory)
    assert program is not None
    assert [t.name for t in ExternalProgram(program.steps[1:2]).inputs] == ["sdsc_1_add.Tensor0", "sdsc_1_add.Tensor1"]


def test_a_fault_names_the_file() -> None:
    """Two cores of the published add write one place."""
    view = program_of("01_add_512x512_32core_hbm").steps[0].view
    start = (view.output.start[0], *view.output.start[:-1])
    spoiled = single(replace(view, operands=(*view.inputs, replace(view.output, start=start))), "sdsc_7.json")
    with pytest.raises(MachineFault, match=r"(?s)double-write.*at: sdsc_7\.json"):
        run_foreign(spoiled, values_of(spoiled), EXACT)


def test_one_file_with_symbols() -> None:
    view = describe(read_json(DATA / "superdsc_worked/a32_add_128x256_32core.json"))
    operands = tuple(
        replace(o, symbolic=True, start=tuple(str(-1 - 32 * n - c) for c in range(32)))
        for n, o in enumerate(view.operands)
    )
    program = single(replace(view, operands=operands), "add.json")
    values = values_of(program)
    (result,) = run_foreign(program, values, EXACT).values()
    np.testing.assert_array_equal(result, sum(values.values()))
