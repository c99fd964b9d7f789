"""Tab in a real bash, zsh and fish: words are typed at a prompt, and the shell says with which arguments it ran."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spyre_mlir.cli import opt, run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
PROMPTS = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"], "fish": ["--no-config", "-i"]}
# The tools are functions here, which show the arguments that reach them.
SHOW = {
    "bash": "{tool}() {{ printf '<%s>\\n' \"$*\"; }}\n",
    "zsh": "{tool}() {{ printf '<%s>\\n' \"$*\" }}\n",
    "fish": 'function {tool}; printf "<%s>\\n" "$argv"; end\n',
}
TOOLS: dict[str, Callable[[list[str]], int]] = {"spyre-opt": opt.main, "spyre-run": run.run}
SECONDS = 20  # a loaded machine; none needs one
QUIET = 0.4

Type = Callable[[str, str], str]


class Terminal:
    """A shell at a pseudo-terminal."""

    def __init__(self, argv: list[str], cwd: Path) -> None:
        import pty

        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(argv[0], argv, {**os.environ, "TERM": "dumb", "COLUMNS": "200", "HOME": str(cwd)})
        self._seen = ""

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def read(self, until: str | None = None) -> str:
        """Reads until a text has come, or nothing more comes."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and (until is None or until not in self._seen):
            ready, _, _ = select.select([self._fd], [], [], QUIET if until is None else 0.1)
            if not ready and until is None:
                break
            if ready:
                self._seen += os.read(self._fd, 65536).decode(errors="replace")
        seen, self._seen = self._seen, ""
        return seen

    def close(self) -> None:
        os.close(self._fd)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@pytest.fixture(params=PROMPTS)
def arguments(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Type]:
    """Arguments that reach a tool when somebody types keys, Tab the last of them, and Return."""
    shell: str = request.param
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "program.mlir").touch()
    script = ""
    for tool, main in TOOLS.items():
        assert main(["--print-completion", shell]) == 0
        script += SHOW[shell].format(tool=tool) + capsys.readouterr().out
    (tmp_path / "script").write_text(script)
    terminal = Terminal([shell, *PROMPTS[shell]], tmp_path)

    def type_keys(tool: str, keys: str) -> str:
        terminal.type(f"{tool} ")
        for part in keys.split("\t")[:-1]:
            terminal.type(f"{part}\t")
            terminal.read()
        terminal.type("\n")
        shown = terminal.read(until=">\r\n")
        return " ".join(shown.rpartition("<")[2].partition(">")[0].split())

    terminal.type("source ./script; printf '%s%s\\n' 're' 'ady'\n")
    try:
        assert "not found" not in terminal.read(until="ready")
        yield type_keys
    finally:
        terminal.close()


def test_tab_completes_flags_values_passes_and_files(arguments: Type) -> None:
    typed = {
        "--print-op\t": "--print-op-generic",
        "--decompose\t": "--decompose-aten",
        "-p cse,decompose\t prog\t": "-p cse,decompose-aten program.mlir",
        "--memory\t8G prog\t": "--memory-limit 8G program.mlir",
    }
    assert {keys: arguments("spyre-opt", keys).replace("=", " ") for keys in typed} == typed
    typed = {"--numer\tdev\t": "--numerics device", "--numerics=ex\t": "--numerics exact", "prog\t": "program.mlir"}
    assert {keys: arguments("spyre-run", keys).replace("=", " ") for keys in typed} == typed
