"""What is found of a card's software, and what is said where it is missing."""

import os
import sys
from pathlib import Path

import pytest

from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.runtime.finding import find_card

NOTHING = {"PATH": "/nowhere:/neither"}


def test_says_what_is_missing_and_where_it_looked() -> None:
    with pytest.raises(UnsupportedError) as met:
        find_card(environment=NOTHING)
    text = str(met.value)
    assert "no back-end compiler 'dxp_standalone' (Deeptools): looked in /nowhere, /neither, /opt/ibm" in text
    assert f"no module 'torch_spyre' (torch-spyre): looked with {sys.executable}" in text
    assert "--card-compiler" in text
    assert met.value.exit_code == 2


def test_a_compiler_without_a_runtime() -> None:
    with pytest.raises(UnsupportedError, match="no module 'torch_spyre'") as met:
        find_card("/bin/true -d", environment=NOTHING)
    assert "no back-end compiler" not in str(met.value)
    card = find_card("/bin/true --bundle -d", runs=False, environment=NOTHING)
    assert (card.compiler, card.python) == (("/bin/true", "--bundle", "-d"), None)


@pytest.mark.usefixtures("stand_in")
def test_finds_both_by_their_published_names() -> None:
    card = find_card()
    assert (Path(card.compiler[0]).name, card.compiler[1:], card.python) == ("dxp_standalone", ("-d",), sys.executable)


def test_an_interpreter_that_is_none() -> None:
    with pytest.raises(UnsupportedError, match="the interpreter '/no/python' does not run"):
        find_card("/bin/true", "/no/python", environment=NOTHING)


@pytest.mark.parametrize("command", ["", "  ", "'open"])
def test_a_command_that_is_none(command: str) -> None:
    with pytest.raises(InputError, match="the command"):
        find_card(command or "''" if command else " ", environment=dict(os.environ))


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_time_that_is_none(seconds: float) -> None:
    with pytest.raises(InputError, match="a time of"):
        find_card("/bin/true", seconds=seconds)
