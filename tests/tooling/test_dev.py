"""The developer tool and the files it reads agree."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest

from tests.paths import ROOT


def load_dev() -> ModuleType:
    spec = importlib.util.spec_from_file_location("dev_tool", ROOT / "tools" / "dev.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


dev = load_dev()


def test_every_direct_dependency_is_pinned():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    names = {re.split(r"[\[<>=]", one)[0] for one in wanted} - {"spyre-mlir"}
    assert {"torch", "xdsl", "ruff", "pytest"} <= names
    for name in sorted(names):
        assert re.fullmatch(rf"{re.escape(name)}==[0-9][\w.]*", dev.pinned(name))


def test_what_is_imported_is_a_dependency():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {re.split(r"[\[<>=]", one)[0].lower() for one in project["dependencies"]} | {"functorch"}  # torch's own
    imported = {
        name.partition(".")[0]
        for file in (ROOT / "spyre_mlir").rglob("*.py")
        for name in re.findall(r"^ *(?:from|import) ([a-z][\w.]*)(?: import .*| as \w+)?$", file.read_text(), re.M)
    }
    assert {"torch", "jinja2"} <= imported
    assert imported - set(sys.stdlib_module_names) - {"spyre_mlir"} <= named


def test_torch_is_pinned_without_a_build_tag():
    assert "+" not in dev.pinned("torch")


def test_missing_pin_says_where(tmp_path: Path):
    with pytest.raises(dev.DevError, match="no line for nothing"):
        dev.pinned("nothing")


def test_old_python_is_told_what_to_do(capsys: pytest.CaptureFixture[str]):
    with mock.patch.object(dev.sys, "version_info", (3, 10, 2)):
        assert dev.main() == 1
    assert "Python 3.11 or newer is needed, this is 3.10" in capsys.readouterr().err


def test_stamp_follows_the_files(tmp_path: Path):
    before = dev.wanted_stamp()
    changed = tmp_path / "pyproject.toml"
    changed.write_text("changed")
    with mock.patch.object(dev, "PYPROJECT", changed):
        assert dev.wanted_stamp() != before
    assert dev.wanted_stamp() == before


def test_failed_install_is_an_error_and_leaves_no_stamp(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    stamp = tmp_path / "stamp"
    with (
        mock.patch.multiple(dev, STAMP=stamp, PYTHON=Path(sys.executable), run=lambda *_: 1),
        mock.patch.object(sys, "argv", ["dev.py", "setup"]),
    ):
        assert dev.main() == 1
    assert "installing torch failed with exit code 1" in capsys.readouterr().err
    assert not stamp.exists()


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("run", ["python3 tools/dev.py all"]),
        ("samples", ['python3 tools/dev.py test tests/opinfo -m "slow or not slow"']),
    ],
)
def test_continuous_integration_runs_the_documented_commands_only(name: str, wanted: list[str]):
    script = (ROOT / ".ci" / name).read_text()
    commands = [line for line in script.splitlines() if line and not line.startswith(("#", "set ", "cd "))]
    assert commands == wanted
    assert subprocess.run(["bash", "-n", str(ROOT / ".ci" / name)], check=False).returncode == 0


COMMAND = """
import time
try:
    print("up", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(1)
    open("clean", "w")
"""
RUNNER = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background inherit that it is ignored
sys.path.insert(0, sys.argv[1])
import dev
dev.ROOT = "."
sys.exit(dev.run(sys.executable, "-c", sys.argv[2]))
"""


def test_an_interrupted_command_may_clean_up(tmp_path: Path):
    """Ctrl-C reaches the command too: what runs it waits until it is done."""
    words = [sys.executable, "-c", RUNNER, str(ROOT / "tools"), COMMAND]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        while process.stdout.readline() != "up\n":
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(30) == 1
    assert (tmp_path / "clean").exists()


def test_checks_run_side_by_side_and_every_failure_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each waits for the file of the other one, and prints in one piece."""
    meet = "import pathlib, sys, time\npathlib.Path(sys.argv[1]).touch()\nprint('first', flush=True)\n"
    meet += "while not pathlib.Path(sys.argv[2]).exists(): time.sleep(0.01)\nprint('last')\nsys.exit(int(sys.argv[3]))"
    (tmp_path / "meet.py").write_text(meet)
    commands = [(sys.executable, "meet.py", *words) for words in (("a", "b", "0"), ("b", "a", "3"))]
    monkeypatch.setattr(dev, "make_environment", lambda: None)
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    monkeypatch.setattr(dev, "checks", lambda: commands)
    monkeypatch.setattr(dev.os, "cpu_count", lambda: 2)
    assert dev.check([]) == 1
    printed = capfd.readouterr().out
    for command in commands:
        assert f"+ {' '.join(command)}\nfirst\nlast\n" in printed
    assert printed.endswith(f"failed: {' '.join(commands[1])}\nchecks failed\n")


@pytest.mark.parametrize(("tests", "checks", "code"), [(0, 0, 0), (5, 0, 5), (0, 3, 1), (5, 3, 5)])
def test_checks_run_beside_the_tests_and_print_behind_them(
    tests: int,
    checks: int,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The tests wait for a file that the check makes."""
    wait = "import pathlib, sys, time\nwhile not pathlib.Path('checked').exists(): time.sleep(0.01)\n"
    (tmp_path / "wait.py").write_text(f"{wait}print('tested', *sys.argv[1:], flush=True)\nsys.exit({tests})")
    touch = f"import pathlib, sys; print('checked'); pathlib.Path('checked').touch(); sys.exit({checks})"
    monkeypatch.setattr(dev, "make_environment", lambda: None)
    monkeypatch.setattr(dev, "ROOT", tmp_path)
    monkeypatch.setattr(dev, "checks", lambda: [(sys.executable, "-c", touch)])
    monkeypatch.setattr(dev, "test", lambda words: dev.run(sys.executable, "wait.py", *words))
    assert dev.test_and_check(["-x"]) == code
    said = [line for line in capfd.readouterr().out.splitlines() if line.startswith(("tested", "check", "all"))]
    assert said == ["tested -x", "checked", "checks failed" if checks else "all checks passed"]
