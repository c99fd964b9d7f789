"""Bundles as text: the files, in folders where there are several launches, and the manifest without weights."""

from __future__ import annotations

from pathlib import Path

import pytest

from spyre_mlir.backend.directory import write_bundle
from spyre_mlir.backend.rendered import render
from spyre_mlir.errors import EmitError
from tests.unit.backend.programs import ONE, TWO, host, read


def test_every_file_of_a_launch_is_there_but_weights_and_manifest() -> None:
    rendered = render(read(ONE), {})
    assert list(rendered.texts)[:2] == ["program.mlir", "bundle.mlir"]
    assert all(name.startswith("sdsc_") for name in list(rendered.texts)[2:])
    assert (rendered.manifest["weights"], rendered.manifest["digests"]) == ({}, {})
    assert len(rendered.manifest["launches"]) == len(rendered.texts) - 2  # pyright: ignore[reportArgumentType]


def test_files_of_several_launches_are_in_folders() -> None:
    folders = {name.partition("/")[0] for name in render(read(TWO), {}).texts}
    assert folders == {"program.mlir", "launch_0", "launch_1"}


def test_the_program_is_the_host_part() -> None:
    text = render(read(ONE), {}).texts["program.mlir"]
    assert "@main" in text and "superdsc.sdsc" not in text


def test_rendered_files_are_written_as_they_are(tmp_path: Path) -> None:
    rendered = render(read(ONE), {})
    write_bundle(tmp_path / "bundle", rendered, {})
    for name, text in rendered.texts.items():
        assert (tmp_path / "bundle" / name).read_text() == text


def test_a_module_of_another_level_has_no_files() -> None:
    with pytest.raises(EmitError, match="a bundle needs"):
        render(read(host("sdsc_bundle")), {})
