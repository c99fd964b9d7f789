"""Digests of packages by their files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from spyre_mlir.cache import sources
from spyre_mlir.cache.errors import NotCacheableError
from spyre_mlir.cache.sources import compiler_digest, is_versioned, package_digest, tree_digest

LATER = 4e9


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def digest(*roots: Path, loaded: float = LATER) -> str:
    return tree_digest("acme", list(roots), loaded)


@pytest.mark.parametrize("name", ["spyre_mlir", "spyre_mlir.ops", "torch.nn", "xdsl", "numpy", "json", "os.path"])
def test_versions_say_what_these_are(name: str) -> None:
    assert is_versioned(name)


@pytest.mark.parametrize("name", ["acme_spyre", "__main__", "spyre_mlir_acme", "pytest", ""])
def test_versions_do_not_say_what_these_are(name: str) -> None:
    assert not is_versioned(name)


def test_the_same_files_have_one_digest_wherever_they_are(tmp_path: Path) -> None:
    a, b = (written(tmp_path / name, one="1", sub__two="2") for name in "ab")
    assert digest(a) == digest(b)


@pytest.mark.parametrize(
    "files", [{"one": "1"}, {"one": "1", "sub__two": "3"}, {"one": "1", "two": "2"}, {"one": "12", "sub__two": ""}]
)
def test_other_files_have_another_digest(files: dict[str, str], tmp_path: Path) -> None:
    before = digest(written(tmp_path / "a", one="1", sub__two="2"))
    assert digest(written(tmp_path / "b", **files)) != before


def test_only_code_counts(tmp_path: Path) -> None:
    before = digest(written(tmp_path, one="1"))
    (tmp_path / "notes.txt").write_text("a note")
    assert digest(tmp_path) == before
    (tmp_path / "made.so").write_bytes(b"\0")
    assert digest(tmp_path) != before


def test_a_module_is_its_file(tmp_path: Path) -> None:
    written(tmp_path, one="1", two="2")
    assert digest(tmp_path / "one.py") != digest(tmp_path / "two.py")


def test_a_file_that_is_later_than_what_runs_is_refused(tmp_path: Path) -> None:
    written(tmp_path, one="1")
    os.utime(tmp_path / "one.py", (100, 100))
    digest(tmp_path, loaded=100.0)
    with pytest.raises(NotCacheableError, match=r"the source of acme has changed since this process began: .*one\.py"):
        digest(tmp_path, loaded=99.0)


def test_no_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotCacheableError, match="acme has no source"):
        digest(tmp_path)
    with pytest.raises(NotCacheableError, match="no_such_package has no source"):
        package_digest("no_such_package")


def test_very_much_source_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_MOST_BYTES", 2)
    with pytest.raises(NotCacheableError, match="more than 2 bytes"):
        digest(written(tmp_path, one="123"))


def test_an_installed_package_is_its_record() -> None:
    assert package_digest("pluggy").startswith("record ")


def installed(folder: Path, name: str, *, editable: bool) -> None:
    info = written(folder, **{name: "1"}) / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "RECORD").write_text(f"{name}.py,sha256=1,1\n")
    (info / "direct_url.json").write_text('{"url": "file:///x", "dir_info": {"editable": true}}' if editable else "{}")
    os.utime(folder / f"{name}.py", (0, 0))


@pytest.mark.parametrize(("editable", "kind"), [(True, "source"), (False, "record")])
def test_a_package_that_may_change_in_place_is_its_source(
    editable: bool, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, f"acme_{kind}", editable=editable)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert package_digest(f"acme_{kind}").split()[0] == kind


def test_the_compiler_is_its_source() -> None:
    assert compiler_digest().startswith("source ")
