"""`spyre-run` checks a bundle before it runs it: what was changed, lost or damaged since it was written."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import spyre_mlir
from spyre_mlir.backend.whole_files.digest import digest_of_file, digest_of_text
from spyre_mlir.cli import run as run_tool
from spyre_mlir.cli import translate

Refused = Callable[..., str]


def flipped(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["weights.safetensors", "data.safetensors"])
@pytest.mark.parametrize("place", [0.75, 1.0])
def test_a_flipped_bit_is_found(name: str, place: float, bundle: Path, refused: Refused) -> None:
    path = bundle / name
    flipped(path, int((path.stat().st_size - 1) * 8 * place))
    refused(run_tool.run, [bundle], "file-digests", name, "expected crc32:", "--no-check")
    assert run_tool.run([str(bundle), "--no-check"]) == 0


@pytest.mark.parametrize("name", ["sdsc_2.json", "program.mlir", "bundle.mlir"])
def test_a_changed_letter_is_found(name: str, bundle: Path, refused: Refused) -> None:
    """A blank at the end of a line means nothing to any reader."""
    path = bundle / name
    path.write_text(path.read_text().replace("\n", " \n", 1))
    refused(run_tool.run, [bundle], "file-digests", name)
    assert run_tool.run([str(bundle), "--no-check"]) == 0


def test_digests_are_those_of_the_standard(tmp_path: Path) -> None:
    """The check value of CRC-32, as its catalogues give it."""
    (tmp_path / "f").write_bytes(b"123456789")
    assert digest_of_file(tmp_path / "f") == digest_of_text("123456789") == "crc32:cbf43926"


def without_digests(bundle: Path) -> None:
    """A bundle as earlier versions wrote it."""
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest.pop("digests")
    (bundle / "manifest.json").write_text(json.dumps(manifest))


def test_a_bundle_without_digests_is_run(bundle: Path) -> None:
    without_digests(bundle)
    assert run_tool.run([str(bundle)]) == 0


def test_a_deleted_launch_is_an_error(bundle: Path, refused: Refused) -> None:
    without_digests(bundle)
    path = bundle / "bundle.mlir"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if 'sdsc_filename="sdsc_2.json"' not in line))
    refused(run_tool.run, [bundle], "rule")
    (bundle / "sdsc_2.json").unlink()
    refused(run_tool.run, [bundle], "rule")
    assert translate.main(["--check", str(bundle)]) == 1


def test_a_manifest_of_other_launches_is_an_error(bundle: Path, refused: Refused) -> None:
    without_digests(bundle)
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["launches"].append(manifest["launches"][0])
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    refused(run_tool.run, [bundle], "manifest-current", "the 3 launches of bundle.mlir")


@pytest.fixture
def difference(tmp_path: Path) -> Path:
    """A bundle of `x - y` whose 32 cores take 32 addresses of each tensor."""

    class Difference(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x - y

    compiled = spyre_mlir.compile(Difference(), (torch.ones(64, 64), torch.ones(64, 64)))
    compiled.save(tmp_path / "difference")
    without_digests(tmp_path / "difference")
    return tmp_path / "difference"


def exchange(bundle: Path, pairs: list[tuple[int, int]]) -> None:
    """Exchanges operands of the first launch by number: core 0 to 31 of x, then of y, then of the result."""
    path = bundle / "bundle.mlir"
    text = path.read_text()
    found = re.search(r"sdsc_execute \(([^)]*)\)", text)
    assert found is not None
    names = found[1].split(", ")
    assert len(names) == 3 * 32
    for one, other in pairs:
        names[one], names[other] = names[other], names[one]
    path.write_text(text.replace(found[1], ", ".join(names)))


@pytest.mark.parametrize("pair", [(0, 1), (3, 30), (40, 45), (64, 95)])
def test_exchanged_core_addresses_are_refused(pair: tuple[int, int], difference: Path, refused: Refused) -> None:
    exchange(difference, [pair])
    refused(run_tool.run, [difference], "rule", "so its results could be wrong")


def test_exchanged_operands_are_refused(difference: Path, refused: Refused) -> None:
    """Each file is sound by itself; the manifest knows which tensor each operand is."""
    exchange(difference, [(core, 32 + core) for core in range(32)])
    refused(run_tool.run, [difference], "it means argument 0, and these bytes are of argument 1", code=3)


@pytest.mark.parametrize("name", ["../outside.json", "/etc/passwd", "link.json"])
def test_nothing_outside_of_the_directory_is_read(name: str, bundle: Path, refused: Refused) -> None:
    outside = bundle.parent / "outside.json"
    outside.write_text("root:x:0:0\n")
    (bundle / "link.json").symlink_to("/etc/passwd")
    path = bundle / "bundle.mlir"
    path.write_text(path.read_text().replace("sdsc_1.json", name))
    for tool, words in (
        (run_tool.run, [bundle]),
        (run_tool.run, [bundle, "--no-check"]),
        (translate.main, ["--superdsc-to-mlir", bundle]),
    ):
        assert "root:x" not in refused(tool, words, "leads out of its directory", name)
    assert translate.main(["--check", str(bundle)]) == 1


@pytest.mark.parametrize("name", ["weights.safetensors", "data.safetensors", "program.mlir", "manifest.json"])
def test_no_link_leads_out_of_the_directory(name: str, bundle: Path, refused: Refused) -> None:
    (bundle / name).rename(bundle.parent / name)
    (bundle / name).symlink_to(bundle.parent / name)
    refused(run_tool.run, [bundle, "--no-check"], "leads out of its directory", name)


def test_a_link_within_the_directory_is_followed(bundle: Path) -> None:
    (bundle / "sdsc_1.json").rename(bundle / "real.json")
    (bundle / "sdsc_1.json").symlink_to("real.json")
    assert run_tool.run([str(bundle)]) == 0


@pytest.mark.parametrize("replacement", [None, "dangling", "loop"])
def test_a_bundle_without_its_function_is_said_so_at_once(
    replacement: str | None, bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (bundle / "bundle.mlir").unlink()
    if replacement is not None:
        os.symlink("nowhere" if replacement == "dangling" else "bundle.mlir", bundle / "bundle.mlir")
    assert translate.main(["--check", str(bundle)]) == 1
    out = capsys.readouterr().out
    assert "bundle-text" in out and "1 error" in out
