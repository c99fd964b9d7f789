"""The command line of `spyre-run`: defaults, choices, and what is refused."""

from __future__ import annotations

import pytest

from spyre_mlir.choices import RANDOM_INTEGERS_BELOW
from spyre_mlir.cli.run_options import parse_arguments
from spyre_mlir.errors import SpyreError

DEFAULTS = {
    "card": None,
    "card_compiler": None,
    "card_python": None,
    "card_keep": None,
    "card_seconds": 600.0,
    "path": "b",
    "input": [],
    "numerics": None,  # exact, unless the weights are there in device form only
    "seed": 0,
    "output": None,
    "on_fault": "raise",
    "nan": "allow",
    "on_overflow": "warn",
    "probe": [],
    "accuracy": False,
    "bisect": False,
    "no_check": False,
    "time": None,
    "to": None,
    "trace": None,
    "ideal_cycles": None,
    "report": None,
    "json": None,
    "memory_limit": None,
    "verbose": 0,
}


def test_defaults() -> None:
    assert vars(parse_arguments(["b"])) == DEFAULTS


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (["--input", "x=a.npy", "--input", "b.safetensors"], {"input": ["x=a.npy", "b.safetensors"]}),
        (["--numerics", "device"], {"numerics": "device"}),
        (["--numerics", "exact"], {"numerics": "exact"}),
        (["--seed", "7"], {"seed": 7}),
        (["--output", "out"], {"output": "out"}),
        (["--on-fault", "warn"], {"on_fault": "warn"}),
        (["--on-fault", "collect"], {"on_fault": "collect"}),
        (["--nan", "fault"], {"nan": "fault"}),
        (["--on-overflow", "raise"], {"on_overflow": "raise"}),
        (["--on-overflow", "ignore"], {"on_overflow": "ignore"}),
        (["--probe", "sdsc_3", "--probe", "list"], {"probe": ["sdsc_3", "list"]}),
        (["--bisect"], {"bisect": True}),
        (["--no-check"], {"no_check": True}),
        (["--time"], {"time": "calibrated"}),
        (["--trace", "t.json", "--report", "r.html"], {"trace": "t.json", "report": "r.html"}),
        (["--json", "r.json"], {"json": "r.json"}),
        (["--memory-limit", "2G"], {"memory_limit": 2 * 1024**3}),
        (["-vv"], {"verbose": 2}),
    ],
)
def test_every_option(words: list[str], changed: dict[str, object]) -> None:
    assert vars(parse_arguments(["b", *words])) == {**DEFAULTS, **changed}


def test_defaults_may_be_said() -> None:
    words = ["--on-fault", "raise", "--nan", "allow", "--on-overflow", "warn", "--seed", "0"]
    assert vars(parse_arguments(["b", *words])) == DEFAULTS


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "the following arguments are required: PATH"),
        (["b", "--numerics", "fast"], "argument --numerics: invalid choice: 'fast'"),
        (["b", "--on-fault", "ignore"], "argument --on-fault: invalid choice: 'ignore'"),
        (["b", "--nan", "raise"], "argument --nan: invalid choice: 'raise'"),
        (["b", "--on-overflow", "fault"], "argument --on-overflow: invalid choice: 'fault'"),
        (["b", "--seed", "-1"], "argument --seed: -1 is negative"),
        (["b", "--seed", "x"], "argument --seed: invalid whole number value: 'x'"),
        (["b", "--nothing"], "unrecognized arguments: --nothing"),
    ],
)
def test_an_unusable_command_line(words: list[str], message: str) -> None:
    with pytest.raises(SpyreError) as caught:
        parse_arguments(words)
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    "more", [["--probe", "list"], ["--output", "d"], ["--time"], ["--trace", "t.json"], ["--ideal-cycles", "c.txt"]]
)
def test_finding_a_divergence_goes_alone(more: list[str]) -> None:
    others = "--probe, --output, --time, --trace and --ideal-cycles go"
    with pytest.raises(SpyreError, match=f"--bisect compares two runs; {others}"):
        parse_arguments(["b", "--bisect", *more])
    assert parse_arguments(["b", "--bisect", "--seed", "1", "--report", "r.html", "--json", "r.json"]).bisect


def test_comparing_numerics_goes_alone() -> None:
    assert parse_arguments(["b", "--accuracy"]).accuracy
    with pytest.raises(SpyreError, match="--accuracy compares two runs; --probe"):
        parse_arguments(["b", "--accuracy", "--time"])
    with pytest.raises(SpyreError, match="--accuracy runs in device and in exact numerics; leave out --numerics"):
        parse_arguments(["b", "--accuracy", "--numerics", "device"])
    with pytest.raises(SpyreError, match="two comparisons; choose one"):
        parse_arguments(["b", "--accuracy", "--bisect"])


def test_the_help_says_what_random_numbers_are(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    with pytest.raises(SystemExit):
        parse_arguments(["--help"])
    text = " ".join(capsys.readouterr().out.split())
    assert text.startswith("usage: spyre-run ")
    assert "numbers uniform in [-1, 1), integers from 0 to 9." in text
    assert RANDOM_INTEGERS_BELOW == 10
    assert (
        "Run an .mlir file of any level, a bundle directory, a model in parts, or a SuperDSC file, on the "
        "hardware model." in text
    )


@pytest.mark.parametrize(
    "shown",
    [
        "PATH an .mlir file, a directory of a bundle or of a model in parts, or a SuperDSC .json file",
        "--input NAME=FILE.npy the value of an argument; FILE.safetensors alone gives all arguments it contains",
        "--numerics {exact,device,none} device (default) rounds as the card does, with a bundle's weights in",
        "Levels above superdsc always compute exactly, KTIR in its own types, and --bisect compares exactly by default",
        "--seed SEED seed of random arguments (default 0)",
        "--output DIR write every result to DIR/NAME.npy",
        "--on-fault {raise,warn,collect} raise stops at the first fault (default); warn says each once on stderr",
        "lists them at the end, with exit code 3; above the superdsc level the first fault always stops the run",
        "--nan {allow,fault} fault: report an operation of a bundle that turns numbers into infinities or NaN",
        "--on-overflow {warn,raise,ignore} finite numbers beyond the largest DLFloat16, in device numerics: warn says",
        "(default), raise ends with exit code 3 and without results, ignore says nothing",
        "--probe NAME also write the result of an op to NAME.npy, in --output or here: sdsc_3 of a bundle, %value",
        "--bisect compare a bundle directory with its levels, and name the first op whose value differs",
        "--no-check run a bundle or a SuperDSC file even if it violates rules of spyre-translate --check",
    ],
)
def test_the_help_says_what_options_do(
    shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    with pytest.raises(SystemExit):
        parse_arguments(["--help"])
    assert shown in " ".join(capsys.readouterr().out.split())
