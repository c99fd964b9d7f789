"""Flags that follow from the options of `compile`."""

from __future__ import annotations

import argparse
from dataclasses import replace

import pytest

from spyre_mlir.cli.flags.option_flags import add_option, chosen_options, flag, option_flags
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.options import CompileOptions


def parsed(*argv: str) -> CompileOptions:
    parser = argparse.ArgumentParser()
    for entry in option_flags():
        add_option(parser, entry)
    return chosen_options(parser.parse_args(argv))


def test_without_flags_the_defaults_hold() -> None:
    assert parsed() == CompileOptions()


def test_options_about_calls_have_no_flag() -> None:
    flags = {flag(entry) for entry in option_flags()}
    assert {"--share-files", "--keep-float32", "--sdsc-version"} <= flags
    assert flags.isdisjoint({"--numerics", "--on-fault", "--on-overflow"})


def test_switches_choices_and_texts_are_read() -> None:
    given = parsed("--share-files", "--loops", "unroll", "--spec", "cores_per_card=64")
    assert given == CompileOptions(share_files=True, loops="unroll", spec=replace(SPYRE, cores_per_card=64))


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--loops", "once"), "argument --loops: invalid choice: 'once'"),
        (("--spec", "cores=64"), "argument --spec: a card has no number cores"),
    ],
)
def test_wrong_values_name_their_flag(argv: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(*argv)
    assert message in capsys.readouterr().err


def test_help_says_what_an_option_means(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--help")
    text = " ".join(capsys.readouterr().out.split())
    assert "symbolic binds addresses at run time, concrete writes them into the files (default symbolic)" in text


def test_a_switch_that_is_on_has_a_flag_that_turns_it_off() -> None:
    assert parsed("--no-regions") == CompileOptions(regions=False)
