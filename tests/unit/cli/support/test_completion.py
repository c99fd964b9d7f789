"""Completion of command lines: what bash offers with the script of a tool, and the scripts of other shells."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from spyre_mlir.cli import compile as compile_tool
from spyre_mlir.cli import opt, run
from spyre_mlir.cli.compiling.graphs import DOT, EXPLORER, PYTHON
from spyre_mlir.cli.support.completion import Flag, completion_script
from spyre_mlir.pipeline import LEVELS

needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
FLAGS = {
    "--numerics": Flag(("exact", "device"), takes_value=True, help="how to round; the default is [device]"),
    "-p": Flag(("cse", "canonicalize"), takes_value=True, several=True),
    "--seed": Flag(takes_value=True),
    "--sum": Flag(help="xDSL's [sum]"),
}


@pytest.fixture
def offered(tmp_path: Path) -> Callable[..., list[str]]:
    """What bash offers for the last of some words."""

    def complete(script: str, function: str, *words: str) -> list[str]:
        (tmp_path / "script").write_text(script)
        (tmp_path / "program.mlir").touch()
        listed = " ".join(f"'{word}'" for word in words)
        code = (
            f"source ./script; COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; {function}; "
            'printf "%s\\n" "${COMPREPLY[@]}"'
        )
        done = subprocess.run(["bash", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.split()

    return complete


@needs_bash
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["tool", "--"], ["--numerics", "--seed", "--sum"]),
        (["tool", "--num"], ["--numerics"]),
        (["tool", "--numerics", ""], ["exact", "device"]),
        (["tool", "--numerics", "=", "de"], ["device"]),
        (["tool", "--numerics", "="], ["exact", "device"]),
        (["tool", "-p", "c"], ["cse", "canonicalize"]),
        (["tool", "-p", "cse,can"], ["cse,canonicalize"]),
        (["tool", "--seed", "pro"], ["program.mlir"]),
        (["tool", "pro"], ["program.mlir"]),
    ],
)
def test_words_that_bash_offers(words: list[str], wanted: list[str], offered: Callable[..., list[str]]) -> None:
    assert offered(completion_script("bash", "tool", FLAGS), "_tool", *words) == wanted


@needs_bash
def test_passes_of_spyre_opt(offered: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert opt.main(["--print-completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert offered(script, "_spyre_opt", "spyre-opt", "-p", "cse,decompose") == ["cse,decompose-aten"]
    assert offered(script, "_spyre_opt", "spyre-opt", "--decompose") == ["--decompose-aten"]
    assert offered(script, "_spyre_opt", "spyre-opt", "--verify-d") == ["--verify-diagnostics"]


@needs_bash
def test_choices_of_spyre_run(offered: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["--print-completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert offered(script, "_spyre_run", "spyre-run", "--on-fault", "") == ["raise", "warn", "collect"]


@needs_bash
def test_levels_of_spyre_compile(offered: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert compile_tool.run(["--print-completion", "bash"]) == 0
    script = capsys.readouterr().out
    levels = ["spyre.loop", "spyre.kernel", "superdsc"]
    assert offered(script, "_spyre_compile", "spyre-compile", "m.pt2", "--emit", "s") == levels
    assert (*LEVELS, EXPLORER, DOT, PYTHON) == compile_tool.OFFERED


def test_an_option_of_arguments_per_flag_for_zsh() -> None:
    lines = completion_script("zsh", "tool", FLAGS).splitlines()
    assert lines[2] == "  _arguments \\"
    assert [line.strip(" \\") for line in lines[3:-3]] == [
        "'*--numerics=[how to round]:value:(exact device)'",
        "'*-p+[]:value:_sequence compadd - cse canonicalize'",
        "'*--seed=[]:value:_files'",
        r"'*--sum[xDSL'\''s \[sum\]]'",
    ]


def test_a_line_per_flag_for_fish() -> None:
    assert completion_script("fish", "tool", FLAGS).splitlines() == [
        "complete -c tool -l numerics -xa 'exact device' -d 'how to round'",
        "complete -c tool -s p -xa '(__fish_append , cse canonicalize)'",
        "complete -c tool -l seed -r",
        r"complete -c tool -l sum -d 'xDSL\'s [sum]'",
    ]


def test_another_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.run(["--print-completion", "csh"]) == 1
    assert "invalid choice: 'csh'" in capsys.readouterr().err
