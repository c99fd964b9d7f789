"""Python processes that start at once: forks of one that has loaded torch, xDSL and our modules.

`python tests/warm_python.py SOCKET` serves. With a server, `python tests/warm_python.py SOCKET -m json.tool` does what
`python -m json.tool` does, with the caller's directory, environment and streams. Only our tools keep our modules: other
commands, and tools of another copy of the package, load them anew.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

STREAMS = (0, 1, 2)
LOADED = ("torch._dynamo", "torch.export.pt2_archive._package", "xdsl.xdsl_opt_main", "rich.table")
OURS = "spyre_mlir"
OUR_ROOMS = ("backend", "dialects", "machine", "ops", "report", "transforms")  # what uses torch registers operators
OUR_TOOLS = f"{OURS}.cli"
STARTS_IN = 120.0  # seconds
NO_DEVICES = {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}


@contextmanager
def server(place: Path) -> Generator[list[str]]:
    """Serves while the block runs; gives the words that stand for `python` in a command.

    Args:
        place: an empty directory.
    """
    path = place / "socket"
    with subprocess.Popen([sys.executable, "-P", __file__, path], cwd=place, env=os.environ | NO_DEVICES) as process:
        try:
            latest = time.monotonic() + STARTS_IN
            while not path.exists():
                assert process.poll() is None and time.monotonic() < latest, "the server does not start"
                time.sleep(0.01)
            yield [sys.executable, "-I", "-S", __file__, str(path)]
        finally:
            process.terminate()


def serve(path: Path) -> list[str]:
    """Answers for ever; returns in each process that is asked for, with the words of its command."""
    for name in LOADED:
        __import__(name)
    load_ours()
    gc.collect()
    gc.freeze()  # collectors of the forks leave alone, and do not copy, what is here
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{path}.new")
        listener.listen()
        Path(f"{path}.new").rename(path)
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    content, streams, _, _ = socket.recv_fds(connection, 1 << 20, len(STREAMS))
    process = os.fork()
    if process != 0:
        for stream in (*STREAMS, *streams):
            os.close(stream)
        _, status = os.waitpid(process, 0)
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    connection.close()
    for stream, given in zip(STREAMS, streams, strict=True):
        os.dup2(given, stream)
        os.close(given)
    directory, environment, *words = json.loads(content)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    return words


def load_ours() -> None:
    """Loads what our tools load, and what they load late."""
    for tool in ("opt", "compile", "run", "translate"):
        __import__(f"{OUR_TOOLS}.{tool}")
    for room in OUR_ROOMS:
        name = f"{OURS}.{room}"
        __import__(name)
        for module in pkgutil.walk_packages(sys.modules[name].__path__, f"{name}."):
            __import__(module.name)


def forget_ours(kept: bool) -> None:
    """Has our modules loaded anew, all of them unless the ones that are there are kept: then the tools alone.

    A tool that is run as a program must not be there already.
    """
    for name in [name for name in sys.modules if name.split(".")[0] == OURS]:
        if not kept or name.startswith(f"{OUR_TOOLS}."):
            del sys.modules[name]


def is_our_copy() -> bool:
    """Whether the path leads to the copy of our package that is loaded, which is found without a path too."""
    places = (Path(place, OURS, "__init__.py") for place in sys.path)
    found = next(filter(Path.exists, places), None)
    return found is None or found.samefile(str(sys.modules[OURS].__file__))


def run(words: list[str]) -> None:
    """Runs a command as a new interpreter does."""
    import torch

    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    safe = words[0] == "-P"  # the command's own place is not on the path
    kind, *rest = words[safe:]
    own = [] if safe else [{"-m": os.getcwd(), "-c": "", "-": ""}.get(kind, str(Path(kind).parent))]
    sys.path[:0] = [*own, *paths]
    forget_ours(kept=kind == "-m" and rest[0].startswith(f"{OUR_TOOLS}.") and is_our_copy())
    torch._import_device_backends()
    if kind == "-m":
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind in ("-c", "-"):
        sys.argv = [kind, *rest[kind == "-c" :]]
        exec(rest[0] if kind == "-c" else sys.stdin.read(), {"__name__": "__main__"})  # noqa: S102
    else:
        sys.argv = [kind, *rest]
        runpy.run_path(kind, run_name="__main__")


def run_to_the_end(words: list[str]) -> NoReturn:
    """Runs a command, and ends without freeing what the server has loaded, which takes longer than most commands."""
    code: object = 0
    try:
        run(words)
    except SystemExit as end:
        code = end.code or 0
    except BaseException as error:  # noqa: BLE001
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


def ask(path: str, words: list[str]) -> NoReturn:
    """Has a server run a command, and ends as it ends."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        content = json.dumps([os.getcwd(), dict(os.environ), *words]).encode()
        socket.send_fds(connection, [content], list(STREAMS))
        code = int(connection.recv(16))
    if code < 0:
        os.kill(os.getpid(), -code)
    sys.exit(code)


if __name__ == "__main__":
    place, *command = sys.argv[1:]
    if command:
        ask(place, command)
    run_to_the_end(serve(Path(place)))
