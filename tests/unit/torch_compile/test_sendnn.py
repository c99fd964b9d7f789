"""The runner for scripts that import `torch_sendnn`: a stand-in for one process, and never for the real one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

from spyre_mlir.errors import InputError
from spyre_mlir.torch_compile.dynamo_private import back_ends
from spyre_mlir.torch_compile.history import compilations, forget
from spyre_mlir.torch_compile.sendnn import MODULE, StandIn, back_end, main, supply

SCRIPT = """\
import sys
import torch
import torch_sendnn
from beside import doubled
from torch_sendnn import torch_sendnn as inner

class Model(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x)

model = Model(64, 64)
model.compile(backend="sendnn", options={"sendnn.dynamic": False})
x = torch.randn(2, 64)
with torch.no_grad(), torch_sendnn.warmup_mode(), inner.warmup_mode():
    difference = (model(doubled(x)) - torch.nn.functional.linear(2 * x, model.weight, model.bias)).abs().max()
print(sys.argv, __name__, bool(difference < 1e-5))
sys.exit(7)
"""


def ran(python: list[str], *words: object, place: Path) -> subprocess.CompletedProcess[str]:
    command = [*python, "-m", "spyre_mlir.torch_compile.sendnn", *map(str, words)]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    (tmp_path / "beside.py").write_text("def doubled(x):\n    return x * 2\n")
    (tmp_path / "script.py").write_text(SCRIPT)
    return tmp_path


def test_a_script_runs_as_it_is(scripts: Path, tmp_path_factory: pytest.TempPathFactory, python: list[str]) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    given = ("--explain", "--numerics", "exact", scripts / "script.py", "--numerics", "-m")
    done = ran(python, *given, place=elsewhere)
    assert done.stdout == f"['{scripts / 'script.py'}', '--numerics', '-m'] __main__ True\n"
    assert done.returncode == 7
    assert "captured" in done.stderr


def test_a_module_runs_as_python_runs_it(scripts: Path, python: list[str]) -> None:
    done = ran(python, "-m", "script", "x", place=scripts)
    assert done.stdout.endswith("script.py', 'x'] __main__ False\n")  # device numerics round
    assert done.returncode == 7 and "captured" not in done.stderr


def test_an_absent_script_is_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spyre_mlir.torch_compile.sendnn.supply", lambda numerics: None)
    assert main(["nosuch.py"]) == 1
    assert capsys.readouterr().err == "error: [SPY-I002] no such script: nosuch.py\n  try: -m MODULE for a module\n"


def test_the_real_one_is_never_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{MODULE}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError, match="torch_sendnn itself is installed") as refused:
        supply()
    assert refused.value.where == str(tmp_path / f"{MODULE}.py")
    monkeypatch.setitem(sys.modules, MODULE, ModuleType(MODULE))
    with pytest.raises(InputError, match="torch_sendnn is imported already"):
        supply()
    assert "sendnn" not in back_ends()


def test_the_back_end_of_another_package_is_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spyre_mlir.torch_compile.sendnn.back_ends", lambda: ["inductor", "sendnn"])
    with pytest.raises(InputError, match=r"torch\.compile has a back end sendnn"):
        supply()
    assert MODULE not in sys.modules


@torch.no_grad()
def test_the_back_end_takes_the_option_of_torch_sendnn() -> None:
    forget()
    model, x = nn.Linear(64, 64), torch.randn(2, 64)
    compiled = torch.compile(model, backend=back_end("exact"), options={"sendnn.dynamic": True})
    assert torch.allclose(compiled(x), model(x), atol=1e-5)
    (made,) = compilations()
    assert made.kernels > 0


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(InputError, match=r"has sendnn\.dynamic, got sendnn\.speed"):
        back_end("device")(torch.fx.symbolic_trace(nn.ReLU()), [], options={"sendnn.speed": 1})


def test_the_stand_in_says_what_it_lacks() -> None:
    with pytest.raises(AttributeError, match="the stand-in for torch_sendnn has warmup_mode alone, got backends"):
        StandIn(MODULE).backends  # noqa: B018
