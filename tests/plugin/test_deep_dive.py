"""What torch-spyre's deep dive and architecture page describe, stage by stage; extensions are in `test_cookbook.py`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

import spyre_mlir
from tests.functions import FunctionModel

ROWS, COLUMNS, STICK, CORES = 128, 256, 64, 32
X, Y = torch.linspace(-2, 2, ROWS * COLUMNS).reshape(ROWS, COLUMNS), torch.full((ROWS, COLUMNS), 0.25)


@pytest.fixture(scope="module")
def compiled() -> Any:
    """The result lies as the sum leaves it, an element a stick, which is not how a tensor is placed."""
    return spyre_mlir.compile(FunctionModel(lambda x, y: torch.relu(x + y).sum(-1)), (X, Y), inputs="free")


@pytest.fixture(scope="module")
def files(compiled: Any, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The SuperDSC files, each as the object under its name."""
    directory = compiled.save(tmp_path_factory.mktemp("deep") / "bundle")
    read = [json.loads(path.read_text()) for path in sorted(directory.glob("sdsc_*.json"))]
    return [next(iter(one.values())) for one in read]


def test_loops_become_kernels_and_kernels_superdsc(compiled: Any, files: list[dict[str, Any]]) -> None:
    loops = compiled.mlir("spyre.loop")
    assert loops.count("spyre.loop.nest") == 4 and 'reduce "arith.addf"' in loops
    kernels = ["add", "relufwd", "sum", "identity"]
    text = compiled.mlir("spyre.kernel")
    assert [f'"{name}"' in text for name in kernels] == [True] * 4
    (computed,) = [[next(iter(d.values())) for d in f["dscs_"]] for f in files[:1]]
    assert computed[0]["computeOp_"][0]["opFuncName"] == "add"
    assert [next(iter(f["dscs_"][0].values()))["computeOp_"][0]["opFuncName"] for f in files] == kernels


def test_op_selection_gives_every_operation_a_hardware_function(compiled: Any) -> None:
    functions = [kernel.launch.descriptor.op_func_name for kernel in compiled.timeline().kernels]
    assert functions[:3] == ["add", "relufwd", "sum"]
    assert compiled.host_steps == ()


def test_stickification_lays_64_halves_in_a_stick_and_the_types_say_so(compiled: Any) -> None:
    """torch-spyre's default: the last dimension is cut into sticks of 128 bytes."""
    assert f"!spyre.tensor<[{ROWS}, {COLUMNS}] x SEN169_FP16, order [1, 0], stick 1, hbm>" in compiled.mlir(
        "spyre.kernel"
    )
    assert compiled.timeline().kernels[0].work.needed == 2 * ROWS * COLUMNS // STICK * 128  # both operands, no padding


def test_work_is_divided_over_the_cores(compiled: Any, files: list[dict[str, Any]]) -> None:
    assert f"d0 = {ROWS} over {CORES}" in compiled.mlir("spyre.kernel")
    assert [f["numCoresUsed_"] for f in files] == [CORES] * 4
    assert {kernel.work.cores for kernel in compiled.timeline().kernels} == {CORES}


def test_memory_is_planned_and_intermediates_stay_in_the_scratchpads(compiled: Any) -> None:
    allocations = [line for line in compiled.mlir("spyre.kernel").splitlines() if "spyre.kernel.alloc" in line]
    scratchpads = [line for line in allocations if line.endswith("lx>")]
    assert len(allocations) - len(scratchpads) == 1  # the result
    starts = [int(line.split(" at ")[1].split(" ")[0]) for line in scratchpads]
    assert len(starts) == 3 and max(starts) < 2 * 2**20
    # The sum is written while what it reads is there: its place begins behind a core's share of it.
    assert starts[2] >= starts[1] + ROWS * COLUMNS // CORES * 2


def test_the_compiler_of_the_device_in_torch_compile(tmp_path: Path, python: list[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch, spyre_mlir.device\n"
        "from spyre_mlir.torch_compile import compilations\n"
        "x = torch.ones(4, 64).to('spyre')\n"
        "print(torch.compile(lambda x: torch.relu(x) + 1)(x).cpu().sum().item(), len(compilations()))\n"
    )
    done = subprocess.run([*python, str(script)], capture_output=True, text=True, check=False, env=dict(os.environ))
    assert (done.stdout, done.stderr) == ("512.0 1\n", "")


def test_host_code_is_python_that_launches_the_kernels(compiled: Any, tmp_path: Path, python: list[str]) -> None:
    """The architecture's wrapper: what goes to the card, the launch, and what comes back."""
    compiled.save(tmp_path / "bundle")
    code = compiled.python("bundle")
    lines = [line.strip() for line in code.splitlines()]
    steps = [part for line in lines for part in ("to_device", "launch", "from_device") if f"card.{part}(" in line]
    assert steps == ["to_device", "to_device", "launch", "from_device"]
    assert [words[2] for words in map(str.split, lines) if words[:1] == ["#"] and words[1].endswith(".json")] == [
        "add",
        "relufwd",
        "sum",
        "identity",
    ]
    (tmp_path / "host.py").write_text(code)
    torch.save((X, Y), tmp_path / "x.pt")
    subprocess.run([*python, str(tmp_path / "host.py"), str(tmp_path / "x.pt")], check=True)
    assert torch.equal(torch.load(tmp_path / "x.out.pt"), compiled(X, Y))
