"""Output files and directories that are there whole, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spyre_mlir.cli.support.output import PendingDirectory, PendingOutput
from spyre_mlir.errors import InputError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_there_once_it_is_committed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    output = PendingOutput(str(tmp_path / "folder" / ".." / "a.txt"))
    assert output.target == tmp_path / "a.txt"
    with output as file:
        file.write("one, ")
        file.write("two")
    assert names(tmp_path) == ["folder"]
    assert output.closed
    output.close()
    output.commit()
    assert (tmp_path / "a.txt").read_text() == "one, two"
    assert names(tmp_path) == ["a.txt", "folder"]


def test_a_file_may_be_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    output = PendingOutput(str(tmp_path / "a.txt"))
    output.write("new")
    output.close()
    assert (tmp_path / "a.txt").read_text() == "old"
    output.commit()
    assert (tmp_path / "a.txt").read_text() == "new"


def test_a_file_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError) as caught:
        PendingOutput(str(tmp_path))
    assert caught.value.args == (21, "Is a directory")
    assert caught.value.filename == str(tmp_path)
    path = str(tmp_path / "none" / "a.txt")
    with pytest.raises(FileNotFoundError) as missing:
        PendingOutput(path)
    assert missing.value.args == (2, "No such file or directory")
    assert missing.value.filename == path


@pytest.mark.parametrize(("exists", "asked"), [(True, "a.txt"), (False, "")])
def test_a_file_without_permission_is_refused_at_once(
    exists: bool, asked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is asked where there is one, else its folder."""
    path = tmp_path / "a.txt"
    if exists:
        path.touch()
    refusing = tmp_path / asked
    monkeypatch.setattr("os.access", lambda at, mode: mode != os.W_OK or Path(at) != refusing)
    with pytest.raises(PermissionError) as caught:
        PendingOutput(str(path))
    assert caught.value.args == (13, "Permission denied")
    assert caught.value.filename == str(path)


@pytest.mark.parametrize("exists", [True, False])
def test_a_directory_is_there_once_it_is_committed(exists: bool, tmp_path: Path) -> None:
    target = tmp_path / "out"
    if exists:
        target.mkdir()
    output = PendingDirectory(str(target))
    assert output.target == target
    output.commit({"a.txt": "é", "b.txt": ""})
    assert names(tmp_path) == ["out"]
    assert names(target) == ["a.txt", "b.txt"]
    assert (target / "a.txt").read_bytes() == "é".encode()


def test_a_directory_that_cannot_be_finished_is_not_there(tmp_path: Path) -> None:
    output = PendingDirectory(str(tmp_path / "out"))
    with pytest.raises(FileNotFoundError):
        output.commit({"a.txt": "", "none/b.txt": ""})
    assert names(tmp_path) == []


def test_the_part_is_named_for_the_directory_and_the_process(tmp_path: Path) -> None:
    output = PendingDirectory(str(tmp_path / "out"))
    (tmp_path / f".out.{os.getpid()}.part").mkdir()
    with pytest.raises(FileExistsError):
        output.commit({})


@pytest.mark.parametrize("what", ["file", "full"])
def test_what_is_no_empty_directory_is_left_as_it_is(what: str, tmp_path: Path) -> None:
    target = tmp_path / "out"
    if what == "full":
        target.mkdir()
        (target / "mine").touch()
    else:
        target.touch()
    with pytest.raises(InputError, match="this is no empty directory") as caught:
        PendingDirectory(str(target))
    assert (caught.value.where, caught.value.hint) == (str(target), "name a directory that is new or empty")


def test_a_directory_in_no_directory_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "none" / "out")
    with pytest.raises(FileNotFoundError) as caught:
        PendingDirectory(path)
    assert caught.value.args == (2, "No such file or directory")
    assert caught.value.filename == path


def test_a_directory_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda at, mode: mode != os.W_OK or Path(at) != tmp_path)
    with pytest.raises(PermissionError) as caught:
        PendingDirectory(str(tmp_path / "out"))
    assert caught.value.args == (13, "Permission denied")
    assert caught.value.filename == str(tmp_path / "out")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="pipes have names on Linux")
def test_a_pipe_is_written_to_by_the_link_that_stands_for_it() -> None:
    reading, writing = os.pipe()
    output = PendingOutput(f"/proc/self/fd/{writing}")
    output.write("through")
    output.close()
    output.commit()
    os.close(writing)
    with os.fdopen(reading) as end:
        assert end.read() == "through"
