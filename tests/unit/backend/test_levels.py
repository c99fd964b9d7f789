"""Levels of a program as text files of a bundle: written, and read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from spyre_mlir.backend.levels import read_levels, write_levels
from spyre_mlir.errors import ReadError
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.universe import make_context


def test_levels_are_read_as_they_were_written_with_their_places(tmp_path: Path) -> None:
    context = make_context()
    modules = {
        "spyre.kernel": parse_module("func.func @k() { func.return }", context, "model.py"),
        "aten": parse_module("func.func @é() { func.return }", context, "model.py"),
    }
    write_levels(tmp_path, modules)
    assert sorted(p.name for p in (tmp_path / "levels").iterdir()) == ["aten.mlir", "spyre.kernel.mlir"]
    for level, module in modules.items():
        text = (tmp_path / "levels" / f"{level}.mlir").read_text(encoding="utf-8")
        assert text == module_text(module, locations=True) + "\n"
        assert 'loc("model.py":1:1)' in text
    again = read_levels(tmp_path, context)
    assert list(again) == ["aten", "spyre.kernel"]
    for level, module in again.items():
        assert module_text(module, locations=True) == module_text(modules[level], locations=True)


def test_a_bundle_without_levels_has_none(tmp_path: Path) -> None:
    assert read_levels(tmp_path, make_context()) == {}
    (tmp_path / "levels").mkdir()
    (tmp_path / "levels" / "notes.txt").write_text("no level")
    assert read_levels(tmp_path, make_context()) == {}


def test_levels_are_not_written_twice(tmp_path: Path) -> None:
    write_levels(tmp_path, {})
    with pytest.raises(FileExistsError):
        write_levels(tmp_path, {})


def test_a_level_that_is_no_mlir_or_lies_elsewhere_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "bundle" / "levels"
    folder.mkdir(parents=True)
    (folder / "aten.mlir").write_text("nothing\n")
    with pytest.raises(ReadError, match="no MLIR"):
        read_levels(folder.parent, make_context())
    (folder / "aten.mlir").rename(tmp_path / "outside.mlir")
    (folder / "aten.mlir").symlink_to(tmp_path / "outside.mlir")
    with pytest.raises(ReadError, match=r"levels/aten\.mlir', which leads out of its directory"):
        read_levels(folder.parent, make_context())


def test_levels_are_read_by_name_in_whatever_order_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = make_context()
    write_levels(tmp_path, {name: parse_module("func.func @f() { func.return }", context) for name in ("b", "a", "c")})
    monkeypatch.setattr(Path, "glob", lambda folder, pattern: [folder / f"{name}.mlir" for name in ("c", "a", "b")])
    assert list(read_levels(tmp_path, context)) == ["a", "b", "c"]
