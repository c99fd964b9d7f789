"""Runs cases in processes of their own: one that hangs, dies or eats memory ends alone, and is named."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import resource
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.fuzz.cases import Corpus, case

SECONDS = 20  # of the processor: other work on the machine is no hang
PATIENCE = 600  # seconds of the clock, for what waits and computes nothing
BYTES = 2 << 30  # for a case, on top of what its process held before
NAMED = (0, 1, 2, 3)  # done, the input, unsupported, a fault


@dataclass(frozen=True)
class Outcome:
    """What became of a seed: an exit code, or how the process ended.

    Attributes:
        seed: the case.
        kind: what was damaged.
        command: the tool and its words.
        code: its exit code; None if it gave none.
        message: the first line of what it said, or how it ended.
    """

    seed: int
    kind: str
    command: list[str]
    code: int | None
    message: str

    @property
    def good(self) -> bool:
        """Whether it is a success or a named error."""
        return self.code in NAMED and not re.search(r"Traceback|internal error|Exception ignored", self.message)


def outcomes(seeds: Sequence[int], files: Corpus) -> Iterator[Outcome]:
    """The outcome of every seed, in order."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as root:
        yield from _in_workers(list(seeds), files, Path(root))


def _in_workers(left: list[int], files: Corpus, root: Path) -> Iterator[Outcome]:
    while left:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _work(left, files, root, writing)
        os.close(writing)
        done, last = 0, None
        with os.fdopen(reading, encoding="utf-8") as lines:
            for line in lines:
                value: dict[str, Any] = json.loads(line)
                if "begun" in value:
                    last = value["begun"]
                else:
                    done, last = done + 1, None
                    yield Outcome(**value)
        _, status = os.waitpid(child, 0)
        if done < len(left):
            kind, command = last if last is not None else ("?", [])
            name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {status}"
            how = f"hangs for {SECONDS} s" if name in ("SIGPROF", "SIGALRM") else f"dies of {name}"
            yield Outcome(left[done], kind, command, None, how)
            done += 1
        left = left[done:]


def _work(seeds: Sequence[int], files: Corpus, root: Path, writing: int) -> None:
    """Runs seeds until one ends this process; never returns."""
    limit = held_bytes() + BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with os.fdopen(writing, "w", encoding="utf-8") as lines, contextlib.suppress(BaseException):
        for seed in seeds:
            folder = Path(tempfile.mkdtemp(dir=root))
            try:
                _one(seed, files, folder, lines)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)


def held_bytes() -> int:
    """Data that this process holds; a fork inherits it, and a test run that is hours old holds gigabytes."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(r"VmData:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def _one(seed: int, files: Corpus, folder: Path, lines: Any) -> None:
    kind, tool, words = case(seed, files, folder)
    shown = [tool, *(w.encode("utf-8", "replace").decode()[:200] for w in words)]
    lines.write(json.dumps({"begun": [kind, shown]}) + "\n")
    lines.flush()
    module = import_module(f"spyre_mlir.cli.{tool}")
    out, err = io.StringIO(), io.StringIO()
    os.chdir(folder)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(PATIENCE)
    code, message = None, ""
    sys.stdin = io.TextIOWrapper(io.BytesIO())  # a tool that reads it also closes it
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = (module.run if hasattr(module, "run") else module.main)(words)
        said = err.getvalue()
        bad = re.search(r"internal error[^\n]*|Traceback[\s\S]*", said)
        message = bad[0][-400:] if bad else next((s for s in said.splitlines() if s.startswith("error")), "")[:200]
    except BaseException as error:  # noqa: BLE001 - what gets out of a tool is what is looked for
        message = f"internal error: {type(error).__name__}: {error}"[:400]
    signal.alarm(0)
    signal.setitimer(signal.ITIMER_PROF, 0)
    value = {"seed": seed, "kind": kind, "command": shown, "code": code, "message": message}
    lines.write(json.dumps(value) + "\n")
    lines.flush()


def preload() -> None:
    """Loads the tools before the first fork, so that no process pays for it again."""
    for tool in ("opt", "run", "translate", "compile"):
        import_module(f"spyre_mlir.cli.{tool}")
    sys.stdout.flush()
