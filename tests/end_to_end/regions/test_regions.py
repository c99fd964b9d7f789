"""Layers once: programs with regions compute what flat ones do, on every way through the compiler."""

import json
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.choices import Numerics
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.debug.stored_runs import stored_program
from spyre_mlir.errors import MachineFault
from spyre_mlir.frontend import import_program
from spyre_mlir.machine.bundle.host_program import run_program
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.universe import make_context
from tests.end_to_end.models import llama
from tests.end_to_end.regions.stacks import Block, Stack, decode_step, pairs, stack

Built = tuple[nn.Module, tuple[Tensor, ...]]
# Models by name: what they are, calls, launches of the bundle. Blocks are too small to be outlined twice.
MODELS: dict[str, tuple[Built, int, int]] = {
    "encoder": (stack(1.5, 1.5, 1.5), 3, 5),
    "one differs": (stack(1.5, 1.5, 0.5, 1.5), 3, 6),
    "several results": (pairs(), 3, 5),
    "llama": (llama(2, 8), 2, 4),
    "decode step": (decode_step(2), 2, 4),
}


def compiled(built: Built, **options: Any) -> CompiledModel:
    model, inputs = built
    found = spyre_mlir.compile(model, inputs, **options)
    assert isinstance(found, CompiledModel)
    return found


@cache
def made(name: str, *, regions: bool = True) -> CompiledModel:
    """A model by name, compiled once for all tests that only read it."""
    return compiled(MODELS[name][0], regions=regions)


def results(model: CompiledModel, inputs: Sequence[Tensor], numerics: Numerics) -> list[np.ndarray]:
    return model._run_bundle(inputs, {}, numerics)  # pyright: ignore[reportPrivateUsage] # both numerics of one model


@pytest.fixture(scope="module", params=MODELS)
def case(request: pytest.FixtureRequest) -> tuple[CompiledModel, Built, int, int]:
    return made(request.param), *MODELS[request.param]


@pytest.fixture(scope="module")
def flat(case: tuple[CompiledModel, Built, int, int]) -> CompiledModel:
    (name,) = (name for name, (built, _, _) in MODELS.items() if built is case[1])
    return made(name, regions=False)


def test_layers_are_there_once_and_launched_often(case: tuple[CompiledModel, Built, int, int]) -> None:
    model, _, calls, launches = case
    for level in ("aten", "spyre.loop", "spyre.kernel"):
        assert model.mlir(level).count("func.call @") == calls
        assert model.mlir(level).count("func.func private @") == 1
    assert model.mlir("superdsc").count("spyre.kernel.launch @") == launches


def test_results_are_those_of_the_flat_program(
    case: tuple[CompiledModel, Built, int, int], flat: CompiledModel
) -> None:
    """In device numerics, bit by bit; `verify` holds exact ones against torch."""
    model, built, _, _ = case
    assert "func.call" not in flat.mlir("aten")
    for one, other in zip(results(model, built[1], "device"), results(flat, built[1], "device"), strict=True):
        assert np.array_equal(one, other)


def test_every_level_agrees(case: tuple[CompiledModel, Built, int, int]) -> None:
    """The bundle passes the checker too: the session's fixture asks it for every bundle that a test writes."""
    model, (_, inputs), _, _ = case
    outcome = model.verify(*inputs)
    assert outcome, str(outcome)


@pytest.fixture(scope="module")
def encoder() -> tuple[CompiledModel, Built]:
    return made("encoder"), MODELS["encoder"][0]


def test_calls_share_the_files_of_one_folder(encoder: tuple[CompiledModel, Built], tmp_path: Path) -> None:
    saved = encoder[0].save(tmp_path / "saved")
    assert sorted(p.name for p in saved.iterdir() if p.is_dir()) == ["launch_0", "launch_1", "launch_2"]
    manifest = json.loads((saved / "manifest.json").read_text())
    assert manifest["calls"] == ["", *(f"layers.{n}" for n in range(3)), ""]
    flat = made("encoder", regions=False).save(tmp_path / "flat")
    assert len(list(saved.rglob("sdsc_*.json"))) < len(list(flat.rglob("sdsc_*.json"))) / 2


def test_the_tools_take_a_saved_bundle(encoder: tuple[CompiledModel, Built], tmp_path: Path, python: list[str]) -> None:
    model, (_, inputs) = encoder
    saved = model.save(tmp_path / "saved", levels=True)
    for name, value in zip(("x", "mask"), inputs, strict=True):
        np.save(tmp_path / f"{name}.npy", value.numpy())
    given = [part for name in ("x", "mask") for part in ("--input", f"{name}={tmp_path / name}.npy")]
    command = [*python, "-m", "spyre_mlir.cli.run", str(saved), *given, "--bisect"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    checked = [*python, "-m", "spyre_mlir.cli.translate", "--check", str(saved)]
    assert subprocess.run(checked, capture_output=True, check=False).returncode == 0


def test_timelines_name_the_layer_of_every_kernel(encoder: tuple[CompiledModel, Built]) -> None:
    kernels = encoder[0].timeline().kernels
    layers = [k.launch.layer for k in kernels]
    assert list(dict.fromkeys(layers)) == ["", *(f"layers.{n}" for n in range(3))]
    assert layers.count("layers.0") == layers.count("layers.2") > 10


def test_a_wrong_file_is_told_of_the_layer_that_ran_it(encoder: tuple[CompiledModel, Built], tmp_path: Path) -> None:
    """The second call of the layers gets the weight of another layer as a buffer that is too small."""
    model, (_, inputs) = encoder
    model.save(tmp_path / "saved")
    from spyre_mlir.backend.stored import read_bundle
    from spyre_mlir.dialects.spyre.kernel import LaunchOp, device_tensor

    stored = read_bundle(tmp_path / "saved", make_context())
    assert stored.program is not None
    second = [op for op in stored.program.walk() if isinstance(op, LaunchOp)][2]
    sizes = [device_tensor(b).sticks for b in second.buffers]
    second.operands[sizes.index(max(sizes))] = second.buffers[sizes.index(min(sizes))]
    given = model._inputs(inputs, {})  # pyright: ignore[reportPrivateUsage] # weights included
    with pytest.raises(MachineFault, match=r"layers\.1"):
        run_program(stored_program(stored), given, MachineOptions())


@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.loop_to_kernel.precision_loss.NarrowedWarning")
def test_float32_is_kept_in_layers() -> None:
    built = stack(1.5, 1.5, 1.5)
    model, flat = compiled(built, keep_float32=True), compiled(built, keep_float32=True, regions=False)
    assert model.mlir("spyre.kernel").count("func.call @") == 3
    for one, other in zip(results(model, built[1], "device"), results(flat, built[1], "device"), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
def test_a_layer_that_needs_the_host_makes_the_program_flat() -> None:
    class Hosted(Block):
        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            return torch.special.bessel_j1(super().forward(x, mask))

    model, inputs = stack(1.5, 1.5, 1.5)
    model.layers = nn.ModuleList(Hosted() for _ in range(3)).eval()
    flat = compiled((model, inputs))
    assert "func.call" not in flat.mlir("aten")
    assert len(flat.host_steps) == 3
    assert flat.verify(*inputs)


@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
def test_the_host_may_have_a_part_between_layers() -> None:
    class Between(Stack):
        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            for layer in self.layers:
                x = torch.special.bessel_j1(layer(x, mask))
            return x

    _, inputs = stack(1.5)
    between = compiled((Between((1.5,) * 3).eval(), inputs))
    assert between.mlir("spyre.kernel").count("func.call @") == len(between.host_steps) == 3
    assert between.verify(*inputs)


def test_ktir_comes_from_the_flat_program() -> None:
    assert made("encoder").ktir() == made("encoder", regions=False).ktir()


def test_a_further_layer_costs_a_call() -> None:
    """IR grows by the call and its transfers: counted in ops, not seconds."""

    def ops(layers: int) -> list[int]:
        model, inputs = stack(*[1.5] * layers)
        program = import_program(model, inputs)
        return [r.ops for r in lower(program.module, make_context(), options={"outline-regions": {}}).records]

    few, many = ops(3), ops(5)
    weights = 12
    assert [b - a for a, b in zip(few, many, strict=True)] == [2, 2, 2 * (weights + 2), 2 * (weights + 2)]
