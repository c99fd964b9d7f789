"""Entry points: each loads its tool, and an interrupt while that lasts ends as any later one."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from spyre_mlir.cli import start


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Modules that were loaded, with what their tool was given; the tools give 7."""
    seen: list[tuple[str, Any]] = []

    def load(name: str) -> object:
        def run(argv: Sequence[str] | None) -> int:
            seen.append((name, argv))
            return 7

        return SimpleNamespace(**{"main" if name.endswith("opt") else "run": run})

    monkeypatch.setattr(start, "import_module", load)
    return seen


@pytest.mark.parametrize(
    ("tool", "module"),
    [
        (start.spyre_opt, "opt"),
        (start.spyre_compile, "compile"),
        (start.spyre_run, "run"),
        (start.spyre_translate, "translate"),
        (start.spyre_lsp, "lsp"),
    ],
)
def test_a_tool_is_loaded_and_run(tool: Callable[..., int], module: str, loaded: list[tuple[str, Any]]) -> None:
    assert tool(["-v"]) == 7
    assert tool() == 7
    assert loaded == [(f"spyre_mlir.cli.{module}", ["-v"]), (f"spyre_mlir.cli.{module}", None)]


def test_run_goes_before_main(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "import_module", lambda _: SimpleNamespace(run=lambda _: 1, main=lambda _: 2))
    assert start.spyre_run() == 1


@pytest.mark.parametrize("when", ["loading", "running"])
def test_an_interrupt_ends_with_130(
    when: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_: object) -> Any:
        raise KeyboardInterrupt

    load = interrupted if when == "loading" else lambda _: SimpleNamespace(run=interrupted)
    monkeypatch.setattr(start, "import_module", load)
    assert start.spyre_run() == 130 == start.INTERRUPTED
    assert capfd.readouterr() == ("", "error: interrupted\n")


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_as_a_module_it_takes_the_tool_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    monkeypatch.setitem(sys.modules, "spyre_mlir.cli.mine", SimpleNamespace(run=lambda argv: seen.append(argv) or 5))  # pyright: ignore[reportArgumentType]
    monkeypatch.setattr(sys, "argv", ["start.py", "mine", "a", "b"])
    with pytest.raises(SystemExit) as caught:
        runpy.run_module("spyre_mlir.cli.start", run_name="__main__")
    assert caught.value.code == 5
    assert seen == [["a", "b"]]
