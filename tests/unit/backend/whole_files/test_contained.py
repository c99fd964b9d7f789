"""Names that lead to files below a directory, and names that lead out of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from spyre_mlir.backend.whole_files.contained import contained, is_contained, is_file_of
from spyre_mlir.errors import ReadError


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A directory with a file, a folder, and links of both kinds; beside it a file."""
    directory = tmp_path / "bundle"
    (directory / "folder").mkdir(parents=True)
    (directory / "a.json").write_text("{}")
    (tmp_path / "outside.json").write_text("{}")
    (directory / "in").symlink_to("a.json")
    (directory / "out").symlink_to(tmp_path / "outside.json")
    (directory / "loop").symlink_to("loop")
    return directory


@pytest.mark.parametrize(
    ("name", "below"),
    [
        ("a.json", True),
        ("none.json", True),
        ("folder", True),
        ("folder/b.json", True),
        ("folder/../a.json", True),
        ("in", True),
        ("out", False),
        ("../outside.json", False),
        ("/etc/passwd", False),
        (".", False),
        ("..", False),
        ("", False),
        ("zero\0", False),
    ],
)
def test_a_name_is_followed_to_where_it_leads(bundle: Path, name: str, below: bool) -> None:
    assert is_contained(bundle, name) is below
    if below:
        assert contained(bundle, name) == bundle / name
    else:
        with pytest.raises(ReadError, match="which leads out of its directory") as caught:
            contained(bundle, name)
        assert repr(name) in caught.value.message
        assert caught.value.where == str(bundle)
        assert caught.value.hint == "copy the file into the directory, or write the bundle again"


def test_the_directory_may_be_a_link(bundle: Path) -> None:
    link = bundle.parent / "link"
    link.symlink_to(bundle)
    assert is_contained(link, "a.json")


@pytest.mark.parametrize(
    ("name", "file"),
    [("a.json", True), ("in", True), ("none.json", False), ("folder", False), ("out", False), ("loop", False)],
)
def test_only_a_file_below_a_directory_is_one_of_its_files(bundle: Path, name: str, file: bool) -> None:
    assert is_file_of(bundle, name) is file
