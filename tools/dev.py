"""Everything a developer does with this checkout: `python3 tools/dev.py setup|demo|test|suites|check|all|fix|gen`.

Standard library only: this is the file that makes the environment the others need.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYPROJECT = ROOT / "pyproject.toml"
CONSTRAINTS = ROOT / "tools" / "constraints.txt"
STAMP = VENV / "installed-from"
OLDEST_PYTHON = (3, 11)
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
# Compiles the environment's modules with as many processes as it is told, 0 for one per core; some packages have files
# that are no Python of this version, and pip says nothing of these either. A third of all, which no test or few of them
# import, is left to those who do.
COMPILE = (
    "import compileall, re, sys, sysconfig; "
    r"rare = re.compile(r'[/\\](transformers[/\\]models|sympy[/\\]physics|tests)[/\\]'); "
    "compileall.compile_dir(sysconfig.get_path('purelib'), rx=rare, quiet=2, workers=int(sys.argv[1]))"
)


class DevError(Exception):
    """The environment is not as needed; the message says what to do."""


def environment() -> dict[str, str]:
    """The variables of a command: the environment's tools are first on the path, and modules are compiled once."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PATH": str(BIN) + os.pathsep + os.environ.get("PATH", "")}


def run(*command: str | Path) -> int:
    """Run a command in the checkout with the environment's tools first on the path."""
    words = [str(word) for word in command]
    print("+", " ".join(words), flush=True)
    with subprocess.Popen(words, cwd=ROOT, env=environment()) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            return process.wait() or 1  # the command was interrupted too, and may have to clean up


def run_captured(command: tuple[str | Path, ...], tell: Callable[[str], object]) -> int:
    """Run a command beside others: what it prints is told in one piece, when it has ended."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    tell("+ " + " ".join(words) + "\n" + done.stdout.decode(errors="replace").rstrip("\n"))
    return done.returncode


def must(what: str, *command: str | Path) -> None:
    """Run a command that has to succeed."""
    if code := run(*command):
        raise DevError(f"{what} failed with exit code {code}; its messages are above")


def wanted_stamp() -> str:
    """What the environment is made from; a change of either file makes it anew."""
    parts = [PYPROJECT.read_bytes(), CONSTRAINTS.read_bytes(), sys.version.encode(), str(ROOT).encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def make_environment() -> None:
    """Create `.venv` and install the project with its development tools, unless that is done already."""
    wanted = wanted_stamp()
    if PYTHON.exists() and STAMP.exists() and STAMP.read_text() == wanted:
        return
    if not PYTHON.exists():
        if VENV.exists():
            shutil.rmtree(VENV)
        if run(sys.executable, "-m", "venv", VENV):
            raise DevError(
                "this Python cannot make virtual environments\n"
                "  try: install its venv module (Debian, Ubuntu: apt install python3-venv)"
            )
    # torch by exact version and on its own: pip then takes a local CPU build if one is offered, while
    # a version range would look for the newest and fetch gigabytes of CUDA libraries.
    install = (PYTHON, "-m", "pip", "install", "--no-compile", "-c", CONSTRAINTS)
    must("installing torch", *install, pinned("torch"))
    # pip compiles with one core when it has copied all files: so what is there is compiled while it fetches more.
    with subprocess.Popen([PYTHON, "-c", COMPILE, "1"]):
        must("installing the project", *install, "-e", ".[dev]")
    run(PYTHON, "-c", COMPILE, "0")
    STAMP.write_text(wanted)


def pinned(package: str) -> str:
    """The requirement `package==version` of the constraints file."""
    for line in CONSTRAINTS.read_text().splitlines():
        if line.startswith(f"{package}=="):
            return line
    raise DevError(f"{CONSTRAINTS} has no line for {package}")


def setup(_: list[str]) -> int:
    make_environment()
    print(f"ready: {VENV}")
    return 0


def demo(extra: list[str]) -> int:
    make_environment()
    return run(PYTHON, ROOT / "examples" / "llama_demo.py", *extra)


def test(extra: list[str]) -> int:
    make_environment()
    # Tests that share what a fixture made stand side by side, and mostly stay on one worker.
    chosen = only_changed(extra) if "--changed" in extra else extra
    return run(PYTHON, "-m", "pytest", "-n", "auto", "--dist", "worksteal", *chosen)


def only_changed(extra: list[str]) -> list[str]:
    """The arguments with `--changed [COMMIT]` replaced by the tests that the change can reach."""
    from changed import changed_files, reachable_tests

    place = extra.index("--changed")
    given = extra[place + 1 : place + 2]
    named = bool(given) and not given[0].startswith("-")
    chosen = reachable_tests(changed_files(given[0] if named else "HEAD"))
    print(f"{len(chosen)} test files can be reached" if chosen else "no test can be reached: nothing has changed")
    rest = [*extra[:place], *extra[place + 1 + named :]]
    return [*rest, *(chosen or ["--collect-only", "-q", "--deselect", "tests", "tests/tooling/test_dev.py"])]


def suites(extra: list[str]) -> int:
    make_environment()
    return run(PYTHON, "tools/suites.py", *extra)


def checks() -> list[tuple[str | Path, ...]]:
    """The commands of `check`, the longest first."""
    return [
        (PYTHON, "-m", "pyright", "--pythonpath", PYTHON),
        (PYTHON, "tools/generate.py", "--check"),
        (BIN / "lint-imports",),
        (PYTHON, "-m", "ruff", "format", "--check", "."),
        (PYTHON, "-m", "ruff", "check", "."),
        (PYTHON, "tools/check_lit.py"),
        (PYTHON, "tools/check_english.py"),
    ]


def run_checks(at_a_time: int | None, tell: Callable[[str], object]) -> int:
    """Run every check; returns 1 if one fails."""
    commands = checks()
    with ThreadPoolExecutor(at_a_time) as pool:
        codes = list(pool.map(lambda command: run_captured(command, tell), commands))
    failed = [" ".join(map(str, command)) for command, code in zip(commands, codes, strict=True) if code]
    for name in failed:
        tell(f"failed: {name}")
    tell("checks failed" if failed else "all checks passed")
    return 1 if failed else 0


def _say(text: str) -> None:
    """Print a text and the end of its line in one piece, which other threads cannot come between."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def check(_: list[str]) -> int:
    """Run every check, one per core at a time."""
    make_environment()
    return run_checks(os.cpu_count(), _say)


def test_and_check(extra: list[str]) -> int:
    """Run the checks beside the tests.

    One check takes most of the time of all, so another core would be idle. Their output follows that of the tests.
    """
    make_environment()
    told: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        checking = pool.submit(run_checks, 1, told.append)
        tested = test(extra)
    print("\n".join(told), flush=True)
    return tested or checking.result()


def fix(_: list[str]) -> int:
    make_environment()
    fixed = run(PYTHON, "-m", "ruff", "check", "--fix", ".")
    return run(PYTHON, "-m", "ruff", "format", ".") or fixed


def gen(extra: list[str]) -> int:
    make_environment()
    return run(PYTHON, "tools/generate.py", *extra)


COMMANDS = {
    "setup": (setup, "make .venv and install everything"),
    "demo": (demo, "compile and run a small language model on the hardware model"),
    "test": (test, "run all tests; --changed [COMMIT] those that a change can reach; further arguments go to pytest"),
    "suites": (suites, "run the long suites too, one line each; further arguments are their names"),
    "check": (check, "formatting, lint, types, imports, lit files, English, generated files"),
    "all": (test_and_check, "test and check side by side; further arguments go to pytest"),
    "fix": (fix, "repair formatting and what lint can repair"),
    "gen": (gen, "write the generated files"),
}


def main() -> int:
    if sys.version_info < OLDEST_PYTHON:
        have, need = ".".join(map(str, sys.version_info[:2])), ".".join(map(str, OLDEST_PYTHON))
        print(
            f"error: Python {need} or newer is needed, this is {have}\n  try: python{need} tools/dev.py",
            file=sys.stderr,
        )
        return 1
    listing = "\n".join(f"  {name:6} {text}" for name, (_, text) in COMMANDS.items())
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=f"commands:\n{listing}", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=COMMANDS)
    options, extra = parser.parse_known_args()
    try:
        return COMMANDS[options.command][0](extra)
    except DevError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
