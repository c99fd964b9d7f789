"""Pytest collects the lit files under tests/lit and runs their RUN lines inside this process.

Understood is what our files use: pipes, `2>&1`, `not`, `%s`, `%t`, our tools and filecheck, and
`REQUIRES: mlir-opt`. Real lit runs the same files unchanged: `lit tests/lit`.
"""

from __future__ import annotations

import atexit
import gc
import io
import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from spyre_mlir.hw.spec import SpyreSpec
from tests.clients.other_build import mend
from tests.left_out import mark_left_out, read_list
from tests.long_tests import is_run_of_everything, mark_long, read_names
from tests.warm_python import server
from tests.wrong_lists import told_as_collection_error

# No test takes what another one, or an older compiler, has lowered; those of the cache name a directory.
os.environ["SPYRE_MLIR_CACHE"] = "off"
# There is a worker per core: threads of torch would wait for cores that other workers have.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Tests import transformers, which imports torchvision where the extra `clients` is installed.
mend()
# Modules are compiled, and assertions of tests rewritten, once for this process, the other workers and later runs.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# One profile for every property test: no outcome depends on how fast the machine is.
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("unhurried")

# Workers tell one another in this folder which bundles they have checked: see tests/emitted.py.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["SPYRE_TESTS_CHECKED"] = tempfile.mkdtemp(prefix="spyre-tests-")
    atexit.register(shutil.rmtree, os.environ["SPYRE_TESTS_CHECKED"], ignore_errors=True)

RUN = re.compile(r"^\s*//\s*RUN:\s*(.*)$", re.MULTILINE)
REQUIRES = re.compile(r"^\s*//\s*REQUIRES:\s*(.*)$", re.MULTILINE)
TOOL_MODULES = {
    "spyre-opt": "spyre_mlir.cli.opt",
    "spyre-compile": "spyre_mlir.cli.compile",
    "spyre-run": "spyre_mlir.cli.run",
    "spyre-translate": "spyre_mlir.cli.translate",
}
EXTERNAL_TOOLS = ("mlir-opt", "cat", "grep", "test", "ls")


MLIR_OPT_NAMES = ("mlir-opt", "mlir-opt-22")


class RunLineError(Exception):
    """A RUN line did not do what it should; the message is the report."""


@dataclass(frozen=True)
class Stage:
    """One command of a pipe."""

    argv: list[str]
    expect_failure: bool
    merge_errors: bool


def parse_run_line(line: str) -> list[Stage]:
    """Split a RUN line into the commands of its pipe."""
    words: list[list[str]] = [[]]
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|")
    lexer.whitespace_split = True
    lexer.commenters = ""
    for word in lexer:
        if word == "|":
            words.append([])
        else:
            words[-1].append(word)
    return [stage_of(argv) for argv in words]


def stage_of(argv: list[str]) -> Stage:
    expect_failure = argv[0] == "not"
    argv = argv[1:] if expect_failure else argv
    merge = "2>&1" in argv
    return Stage([word for word in argv if word != "2>&1"], expect_failure, merge)


@contextmanager
def standard_streams(text: str, out: io.StringIO, err: io.StringIO) -> Iterator[None]:
    saved = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
    try:
        with redirect_stdout(out), redirect_stderr(err):
            yield
    finally:
        sys.stdin = saved


def external_tool(name: str) -> str | None:
    """Where a tool of others is; LLVM's mlir-opt is what XDSL_MLIR_OPT says, Debian's, or the one of torch-mlir."""
    if name != "mlir-opt":
        return shutil.which(name)
    found = next(filter(None, map(shutil.which, MLIR_OPT_NAMES)), None)
    return os.environ.get("XDSL_MLIR_OPT") or found or _of_torch_mlir()


def _of_torch_mlir() -> str | None:
    """The mlir-opt in the wheel of torch-mlir, which has upstream's dialects too."""
    package = find_spec("torch_mlir")
    folders = [] if package is None else package.submodule_search_locations or []
    tools = (Path(folder) / "_mlir_libs" / "torch-mlir-opt" for folder in folders)
    return next((str(tool) for tool in tools if tool.is_file()), None)


def tool_main(name: str) -> Callable[[list[str]], int | None]:
    if name == "filecheck":
        filecheck: Any = import_module("filecheck.main")
        return lambda argv: filecheck.main([name, *argv])
    tool: Any = import_module(TOOL_MODULES[name])
    return tool.main


def call(argv: list[str], text: str, *, merge: bool) -> tuple[int, str, str]:
    """Run one command; returns its exit code, its output and, unless merged, its error output."""
    if argv[0] in EXTERNAL_TOOLS:
        errors = subprocess.STDOUT if merge else subprocess.PIPE
        done = subprocess.run(
            [external_tool(argv[0]) or argv[0], *argv[1:]],
            input=text,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr or ""
    if argv[0] not in TOOL_MODULES and argv[0] != "filecheck":
        raise RunLineError(f"tests/conftest.py does not know the tool '{argv[0]}'")
    out = io.StringIO()
    err = out if merge else io.StringIO()
    with standard_streams(text, out, err):
        try:
            code = tool_main(argv[0])(argv[1:]) or 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return code, out.getvalue(), "" if merge else err.getvalue()


def run_line(line: str, path: Path, scratch: Path) -> None:
    """Run a RUN line; raises RunLineError if a command's exit code is not the expected one."""
    text = ""
    names = {"%%": "%", "%s": str(path), "%t": str(scratch / "t")}
    for stage in parse_run_line(re.sub("%[%st]", lambda found: names[found[0]], line)):
        code, output, errors = call(stage.argv, text, merge=stage.merge_errors)
        if (code != 0) != stage.expect_failure:
            shown = f"{errors}{output}" if stage.argv[0] != "filecheck" else f"{errors}{output}\ninput was:\n{text}"
            raise RunLineError(f"RUN: {line}\n'{shlex.join(stage.argv)}' exited with {code}\n{shown}")
        text = output


def joined_run_lines(text: str) -> list[str]:
    """RUN lines of a file; a backslash at the end continues on the next one."""
    lines: list[str] = []
    continued = False
    for line in RUN.findall(text):
        if continued:
            lines[-1] += " " + line.strip()
        else:
            lines.append(line.strip())
        continued = line.rstrip().endswith("\\")
        lines[-1] = lines[-1].rstrip("\\").rstrip() if continued else lines[-1]
    return lines


class LitItem(pytest.Item):
    """One lit file."""

    def runtest(self) -> None:
        text = self.path.read_text(encoding="utf-8")
        for feature in REQUIRES.findall(text):
            if external_tool(feature.strip()) is None:
                pytest.skip(f"needs {feature.strip()}, which is not on the path")
        lines = joined_run_lines(text)
        if not lines:
            raise RunLineError("the file has no RUN line")
        with tempfile.TemporaryDirectory() as scratch:
            for line in lines:
                run_line(line, self.path, Path(scratch))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, RunLineError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"lit: {self.path.name}"


class LitFile(pytest.File):
    """A file with RUN lines."""

    def collect(self) -> Iterator[LitItem]:
        yield LitItem.from_parent(self, name=self.path.stem)


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> LitFile | None:
    if file_path.suffix == ".mlir" and Path(__file__).parent / "lit" in file_path.parents:
        return LitFile.from_parent(parent, path=file_path)
    return None


def pytest_configure(config: pytest.Config) -> None:
    """A run of everything checks a share of what tests emit: all of it would take more than half of the time."""
    default = config.option.markexpr.startswith("not slow")
    if default and "PYTEST_XDIST_WORKER" not in os.environ and is_run_of_everything(config):
        os.environ.setdefault("SPYRE_TESTS_SHARE", "12")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Workers of xdist are told the files that they collect, whether any were named or not."""
    node.workerinput["everything"] = is_run_of_everything(node.config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Before pytest chooses by marks."""
    with told_as_collection_error(config, items):
        mark_left_out(items, read_list(), whole=not any("::" in argument for argument in config.args))
        if is_run_of_everything(config):
            mark_long(items, read_names())


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing that is made here becomes garbage; the collector would walk all of it, again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Records of torch reach pytest by the root logger, as others do.

    To each logger that does not propagate pytest attaches handlers of its own, six times a test; and to one of these
    torch writes traces as soon as somebody listens.
    """
    for name, logger in logging.Logger.manager.loggerDict.items():
        if name.partition(".")[0] == "torch" and isinstance(logger, logging.Logger):
            logger.propagate = True


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop() -> Generator[None, object, object]:
    """The collector leaves alone what lives to the end, and looks less often at what tests make."""
    usual = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    try:
        return (yield)
    finally:
        gc.set_threshold(*usual)
        # pytest collects five times at its end, each time all there is: once is enough.
        gc.collect()
        gc.freeze()


@pytest.fixture
def only_new_garbage() -> None:
    """For tests that collect garbage of their own: what lives already would take seconds to walk."""
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def every_emitted_bundle_is_checked() -> Iterator[None]:
    """What a test emits is checked at once: SuperDSCs against schemas and rules, bundles as a whole."""
    import spyre_mlir.compiled
    from spyre_mlir.transforms.kernel_to_superdsc import bundle_function
    from tests.emitted import check_built_once, check_bundle_once

    write = spyre_mlir.compiled.write_bundle

    def write_and_check(directory: Path, *args: Any, **options: Any) -> None:
        write(directory, *args, **options)
        check_bundle_once(directory)

    build = bundle_function.build

    def build_and_check(descriptor: Any, version: Any, spec: SpyreSpec) -> Any:
        op = build(descriptor, version, spec)
        check_built_once(op, descriptor, spec)
        return op

    with pytest.MonkeyPatch.context() as patch:
        # No test loses power; waiting for the disk is most of the time of a small save.
        patch.setattr(os, "fsync", lambda file: None)
        patch.setattr(bundle_function, "build", build_and_check)
        patch.setattr(spyre_mlir.compiled, "write_bundle", write_and_check)
        yield


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The words that stand for `python` in a command, where how Python starts is not what is tested."""
    with server(tmp_path_factory.mktemp("python")) as words:
        yield words
