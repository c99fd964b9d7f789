"""Files that appear whole, or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from spyre_mlir.backend.whole_files.whole_file import save_text, write_whole
from spyre_mlir.errors import InputError


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_made_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_whole(path, "é\n")
    assert path.read_bytes() == "é\n".encode()
    write_whole(path, "new\n")
    assert path.read_text() == "new\n"
    assert names(tmp_path) == ["a.txt"]


def test_the_old_file_stays_where_the_new_one_fails(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "half\ud800")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_a_new_file_replaces_the_name_and_not_the_bytes(tmp_path: Path) -> None:
    """Whoever has the old file open still reads all of it."""
    path = tmp_path / "a.txt"
    path.write_text("old")
    with path.open() as reader:
        write_whole(path, "new")
        assert reader.read() == "old"


def test_the_part_is_named_for_the_file_and_the_process(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    (tmp_path / f".a.txt.{os.getpid()}.part").mkdir()
    with pytest.raises(IsADirectoryError):
        write_whole(path, "new")
    assert not path.exists()


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link.txt"
    link.symlink_to(tmp_path / "folder" / "a.txt")
    write_whole(link, "text")
    assert link.is_symlink()
    assert (tmp_path / "folder" / "a.txt").read_text() == "text"


def test_a_pipe_is_written_to_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=write_whole, args=(path, "é"), daemon=True)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    writer.start()
    writer.join(5)
    assert not writer.is_alive()
    assert os.read(reader, 10) == "é".encode()
    os.close(reader)
    assert path.is_fifo()


def test_a_saved_text_says_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    assert save_text(path, "text") == path
    assert path.read_text() == "text"


def test_a_text_that_cannot_be_saved_says_what_to_try(tmp_path: Path) -> None:
    path = tmp_path / "none" / "a.txt"
    with pytest.raises(InputError, match="the file cannot be written: No such file or directory") as caught:
        save_text(path, "text")
    assert caught.value.where == str(path)
    assert caught.value.hint == "name a file in a folder that exists"
