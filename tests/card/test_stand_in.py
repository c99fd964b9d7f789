"""The stand-in of a card: it takes what the compiler writes, and rejects directories with planted errors."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import spyre_mlir
from spyre_mlir.hw.spec import SPYRE
from tests.card.stand_in import RejectedError, compile_directory, launch_directory

STAND_INS = ("stand_in.py", "dxp_standalone", "site/torch_spyre/__init__.py", "site/torch_spyre/_C.py")


class Sum(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """x + y as a directory of public files."""
    x = torch.zeros(64, 128, dtype=torch.float16)
    directory = tmp_path_factory.mktemp("card") / "add"
    spyre_mlir.compile(Sum(), (x, x)).save(directory)
    return directory


@pytest.fixture
def directory(pristine: Path, tmp_path: Path) -> Path:
    """A copy with its public files only."""
    for name in ("bundle.mlir", "sdsc_0.json"):
        (tmp_path / name).write_text((pristine / name).read_text())
    return tmp_path


def change(path: Path, pattern: str, by: str) -> None:
    """Replace the first place that matches."""
    text = path.read_text()
    changed = re.sub(pattern, by, text, count=1)
    assert changed != text
    path.write_text(changed)


def test_it_takes_what_the_compiler_writes_and_runs_it(directory: Path) -> None:
    compile_directory(directory)
    assert (directory / "spyreCodeDir/spyrecode.json").is_file()
    random = np.random.default_rng(0)
    x, y = (torch.from_numpy(random.integers(-9, 9, 64 * 128).astype(np.float16)) for _ in range(2))
    tensors = [x.clone(), y.clone(), torch.zeros_like(x)]
    launch_directory(directory, tensors)
    assert torch.equal(tensors[2], x + y)  # all three lie alike, so element by element


def test_rejects_a_file_that_is_not_there(directory: Path) -> None:
    (directory / "sdsc_0.json").unlink()
    with pytest.raises(RejectedError, match=r"runs sdsc_0\.json, which is not there"):
        compile_directory(directory)


def test_rejects_fewer_addresses_than_symbols(directory: Path) -> None:
    change(directory / "bundle.mlir", r"sdsc_execute \(%arg0, ", "sdsc_execute (")
    with pytest.raises(RejectedError, match=r"95 operands and 96 symbol ids"):
        compile_directory(directory)


def test_rejects_a_symbol_without_an_address(directory: Path) -> None:
    change(directory / "sdsc_0.json", r'"-1"', '"-1000"')
    with pytest.raises(RejectedError, match="operand 0, core 0: symbol -1000 has no address"):
        compile_directory(directory)


def test_rejects_a_start_beside_a_stick(directory: Path) -> None:
    change(directory / "bundle.mlir", r"arith\.constant 512 ", "arith.constant 520 ")
    with pytest.raises(RejectedError, match="is not on a stick"):
        compile_directory(directory)


def test_rejects_two_cores_with_one_slice(directory: Path) -> None:
    path = directory / "sdsc_0.json"
    data = json.loads(path.read_text())
    slices = next(iter(data.values()))["coreIdToWkSlice_"]
    slices["1"] = slices["0"]
    path.write_text(json.dumps(data))
    with pytest.raises(RejectedError, match="two cores hold the same work slice"):
        compile_directory(directory)


def test_rejects_what_is_not_in_the_grammar(directory: Path) -> None:
    change(directory / "bundle.mlir", r"(\n\s*sdscbundle\.sdsc_execute)", r"\n    scf.if %c {\n    }\1")
    with pytest.raises(RejectedError, match=r"not in the grammar: scf\.if"):
        compile_directory(directory)


def test_rejects_two_cores_that_write_one_place(directory: Path) -> None:
    text = (directory / "bundle.mlir").read_text()
    first, second = re.search(r"(%arg2), (%arg2_at\d+),", text).groups()  # type: ignore[union-attr]
    (directory / "bundle.mlir").write_text(text.replace(f"{first}, {second},", f"{first}, {first},"))
    with pytest.raises(RejectedError, match="is written by 2 cohorts"):
        compile_directory(directory)


def test_it_imports_nothing_of_ours() -> None:
    """In a process of its own, with the modules of this one out of sight."""
    code = "import sys; import tests.card.stand_in; print([m for m in sys.modules if m.startswith('spyre_mlir')])"
    root = Path(__file__).parents[2]
    ended = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_it_says_that_it_is_a_stand_in() -> None:
    for name in STAND_INS:
        assert "stand-in" in (Path(__file__).parent / name).read_text().split('"""')[1].lower(), name
    assert SPYRE.cores_per_card == 32
