"""spyre-compile refuses what it cannot compile, says why, and leaves nothing behind."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file

import spyre_mlir
from spyre_mlir.cli import compile as compile_tool

Refused = Callable[..., str]


class Square(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x


class Waves(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.bessel_j1(torch.relu(x)) * 2


class Drawing(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.randint_like(x, x.sum().long())


def saved_program(path: Path, model: torch.nn.Module, x: torch.Tensor, **options: object) -> Path:
    torch.export.save(torch.export.export(model, (x,), **options), path)
    return path


UNSUPPORTED: dict[str, tuple[torch.nn.Module, torch.Tensor, dict[str, object], list[str]]] = {
    "draws": (Drawing(), torch.zeros(4, 8), {}, ["aten.randint_like.Tensor", "the host cannot draw"]),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_valid_but_unsupported(name: str, tmp_path: Path, refused: Refused) -> None:
    model, x, options, parts = UNSUPPORTED[name]
    path = saved_program(tmp_path / "model.pt2", model, x, **options)
    refused(compile_tool.run, [path, "-o", tmp_path / "bundle"], "SPY-U001", *parts, code=2)
    assert [one.name for one in tmp_path.iterdir()] == ["model.pt2"]


def test_symbols_get_their_values_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ({0: torch.export.Dim("rows", max=64)},)
    path = str(saved_program(tmp_path / "model.pt2", Square(), torch.zeros(4, 8), dynamic_shapes=rows))
    assert compile_tool.run([path, "--emit", "aten"]) == 0
    assert 'tensor<?x8xf32, #aten.extents<"s0">>' in capsys.readouterr().out
    assert compile_tool.run([path, "--emit", "spyre.loop", "--dim", "s0=33"]) == 0
    assert "tensor<33x8xf32>" in capsys.readouterr().out
    assert compile_tool.run([path, "-o", str(tmp_path / "bundle"), "--dim", "s0=33"]) == 0
    assert "tensor<33x8xf32>" in (tmp_path / "bundle" / "program.mlir").read_text()


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([], "symbol s0 has no value"),
        (["--dim", "s0=65"], "symbol s0 is 65, expected 2 to 64"),
        (["--dim", "s0=33", "--dim", "rows=3"], "no symbol rows"),
    ],
)
def test_symbols_without_fitting_values(words: list[str], part: str, tmp_path: Path, refused: Refused) -> None:
    rows = ({0: torch.export.Dim("rows", max=64)},)
    path = saved_program(tmp_path / "model.pt2", Square(), torch.zeros(4, 8), dynamic_shapes=rows)
    refused(compile_tool.run, [path, "-o", tmp_path / "bundle", *words], "SPY-I002", part)
    assert [one.name for one in tmp_path.iterdir()] == ["model.pt2"]


def test_host_steps_are_refused_if_asked(tmp_path: Path, refused: Refused) -> None:
    path = saved_program(tmp_path / "model.pt2", Waves(), torch.zeros(4, 8))
    words = [path, "-o", tmp_path / "bundle", "--host-fallback", "error"]
    parts = ("1 x aten.special_bessel_j1: the op table has no entry for it", "test_compile.py:25")
    refused(compile_tool.run, words, "SPY-U001", *parts, code=2)
    assert [one.name for one in tmp_path.iterdir()] == ["model.pt2"]


def test_host_steps_are_told_on_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved_program(tmp_path / "model.pt2", Waves(), torch.zeros(4, 8))
    assert compile_tool.run([str(path), "-o", str(tmp_path / "bundle")]) == 0
    told = capsys.readouterr()
    assert told.err.count("1 x aten.special_bessel_j1") == 1
    assert "1 x aten.special_bessel_j1" not in told.out  # the report has its line and time, once more is enough
    assert "  host " in told.out
    assert compile_tool.run([str(path), "-o", str(tmp_path / "bundle"), "--host-fallback", "allow"]) == 0
    told = capsys.readouterr()
    assert "bessel" not in told.err
    assert told.out.count("1 x aten.special_bessel_j1") == 1


def test_a_host_step_has_no_ktir(tmp_path: Path, refused: Refused) -> None:
    path = saved_program(tmp_path / "model.pt2", Waves(), torch.zeros(4, 8))
    words = [path, "-o", tmp_path / "out.mlir", "--target", "ktir", "--host-fallback", "allow"]
    refused(compile_tool.run, words, "SPY-U001", "the host step aten.special_bessel_j1 has no KTIR", code=2)


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        (None, ["there is no such file", "torch.export.save"]),
        (b"", ["at: ", "torch.export.save"]),
        (b"hello\n", ["not a zip archive", "torch.export.save"]),
    ],
)
def test_no_program(content: bytes | None, parts: list[str], tmp_path: Path, refused: Refused) -> None:
    path = tmp_path / "model.pt2"
    if content is not None:
        path.write_bytes(content)
    refused(compile_tool.run, [path, "-o", tmp_path / "bundle"], str(path), *parts)
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize("kept", [0.1, 0.9])
def test_truncated_program(kept: float, saved: Path, tmp_path: Path, refused: Refused) -> None:
    content = saved.read_bytes()
    path = tmp_path / "model.pt2"
    path.write_bytes(content[: int(len(content) * kept)])
    refused(compile_tool.run, [path, "-o", tmp_path / "bundle"], "truncated", str(path), "try: ")
    assert [one.name for one in tmp_path.iterdir()] == ["model.pt2"]


def test_other_archive(tmp_path: Path, refused: Refused) -> None:
    torch.save({"weight": torch.zeros(2)}, tmp_path / "weights.pt2")
    refused(compile_tool.run, [tmp_path / "weights.pt2", "--emit", "aten"], "weights.pt2", "torch.export.save")


def test_output_directory_that_cannot_be_made(saved: Path, tmp_path: Path, refused: Refused) -> None:
    file = tmp_path / "file"
    file.write_text("before")
    refused(compile_tool.run, [saved, "-o", file], "a file stands where", str(file), "another directory")
    refused(compile_tool.run, [saved, "-o", file / "bundle"], str(file / "bundle"), "try: ")
    refused(compile_tool.run, [saved, "--emit", "aten", "--dump-dir", file], str(file), "--dump-dir")
    assert file.read_text() == "before"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("inside", ["", "dumps"])
def test_dumps_in_the_directory_that_is_replaced(inside: str, saved: Path, tmp_path: Path, refused: Refused) -> None:
    bundle = tmp_path / "bundle"
    words = [saved, "-o", bundle, "--dump-dir", bundle / inside]
    refused(compile_tool.run, words, f"lies in -o {bundle}, which is replaced as a whole; name another directory")
    assert not bundle.exists()


def test_output_directory_that_holds_something_else(saved: Path, tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    refused(compile_tool.run, [saved, "-o", tmp_path], "neither empty nor a bundle", str(tmp_path))
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize("emit", ["aten", "spyre.loop", "dot:spyre.kernel", "python"])
def test_what_is_printed_goes_to_a_file_if_one_is_named(
    emit: str, saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compile_tool.run([str(saved), "--emit", emit, "-o", "-"]) == 0
    printed = capsys.readouterr().out
    assert len(printed) > 100
    assert compile_tool.run([str(saved), "--emit", emit, "-o", str(tmp_path / "text")]) == 0
    assert capsys.readouterr().out == f"wrote {tmp_path / 'text'}\n"
    assert (tmp_path / "text").read_text() == printed


def test_a_directory_is_no_file_for_a_level(saved: Path, tmp_path: Path, refused: Refused) -> None:
    refused(compile_tool.run, [saved, "--emit", "aten", "-o", tmp_path], str(tmp_path), "directory")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--emit", "loops"], ["no level is called 'loops'", "spyre.loop"]),
        (["-o", "x", "--addresses", "none"], ["--addresses", "'symbolic'", "'concrete'"]),
        (["-o", "x", "--sdsc-version", "TS24"], ["--sdsc-version", "TS25"]),
        (["-o", "x", "--buffers", "b.pt"], ["--buffers and --ignore-unexpected go with --weights"]),
        (["-o", "x", "--weights", "w", "--host-weights", "--device-weights-only"], ["not allowed with"]),
    ],
)
def test_wrong_usage(arguments: list[str], parts: list[str], saved: Path, refused: Refused) -> None:
    refused(compile_tool.run, [saved, *arguments], *parts)


def test_weights_come_from_a_checkpoint(saved: Path, tmp_path: Path, refused: Refused) -> None:
    weight = torch.linspace(-1, 1, 64 * 128).reshape(64, 128)
    given = {"linear.weight": weight, "linear.bias": torch.ones(64)}
    names = set(torch.export.load(saved).state_dict)
    assert names == set(given)
    torch.save(given, tmp_path / "w.pt")
    run = [str(saved), "--weights", str(tmp_path / "w.pt"), "-o"]
    assert compile_tool.run([*run, str(tmp_path / "narrow")]) == 0
    assert compile_tool.run([*run, str(tmp_path / "wide"), "--host-weights"]) == 0
    assert not load_file(tmp_path / "narrow" / "data.safetensors").keys() & names
    assert np.array_equal(load_file(tmp_path / "wide" / "data.safetensors")["linear.weight"], weight.numpy())
    torch.save(given | {"more": weight}, tmp_path / "w.pt")
    refused(compile_tool.run, [*run, str(tmp_path / "none")], "1 unexpected: more")
    assert not (tmp_path / "none").exists()
    assert compile_tool.run([*run, str(tmp_path / "less"), "--ignore-unexpected"]) == 0


def test_weights_and_sizes_go_together(tmp_path: Path) -> None:
    rows = ({0: torch.export.Dim("rows", max=64)},)
    path = saved_program(tmp_path / "model.pt2", torch.nn.Linear(8, 4), torch.zeros(4, 8), dynamic_shapes=rows)
    given = {"weight": torch.linspace(-1, 1, 32).reshape(4, 8), "bias": torch.ones(4)}
    torch.save(given, tmp_path / "w.pt")
    words = [str(path), "--dim", "s0=33", "--weights", str(tmp_path / "w.pt"), "-o", str(tmp_path / "bundle")]
    assert compile_tool.run(words) == 0
    x = torch.randn(33, 8)
    expected = torch.nn.functional.linear(x, given["weight"], given["bias"])
    torch.testing.assert_close(spyre_mlir.load(tmp_path / "bundle")(x), expected, atol=0.02, rtol=0.02)


def test_without_a_directory_the_report_is_printed_and_no_more(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert compile_tool.run([str(saved), "--report", "page.html"]) == 0
    out = capsys.readouterr().out
    assert "predicted time, calibrated profile" in out
    assert out.endswith("no bundle was written; -o DIR writes it\n")
    assert [one.name for one in tmp_path.iterdir()] == ["page.html"]


def test_the_report_has_the_rivals_plan_if_it_is_asked_for(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert compile_tool.run([str(saved), "--report", str(page)]) == 0
    assert "torch-spyre's published rules" not in capsys.readouterr().out and 'id="rival"' not in page.read_text()
    assert compile_tool.run([str(saved), "--rival", "--report", str(page)]) == 0
    assert "torch-spyre's published rules and this plan" in capsys.readouterr().out
    assert 'id="rival"' in page.read_text()
    assert compile_tool.run([str(saved), "--rival", "--emit", "aten"]) == 1
    assert "--rival is about a bundle" in capsys.readouterr().err


def test_figures_on_stdout_are_those_of_the_file(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "figures.json"
    assert compile_tool.run([str(saved), "--json", str(file)]) == 0
    capsys.readouterr()
    assert compile_tool.run([str(saved), "--json", "-"]) == 0
    out, err = capsys.readouterr()
    figures, wanted = json.loads(out), json.loads(file.read_text())
    assert figures["kernels"] == wanted["kernels"] != []
    assert "predicted time, calibrated profile" in err
