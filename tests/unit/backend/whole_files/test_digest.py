"""Checksums of files, against published CRC-32 values."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from spyre_mlir.backend.whole_files.digest import Summed, digest_of_file, digest_of_text

# The check value of CRC-32/ISO-HDLC, and of nothing at all.
CHECK = [("123456789", "crc32:cbf43926"), ("", "crc32:00000000")]
LARGE = b"123456789" * 300_000  # more than two pieces


@pytest.mark.parametrize(("text", "digest"), CHECK)
def test_published_check_values(text: str, digest: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    assert digest_of_text(text) == digest
    assert digest_of_file(path) == digest


def test_what_is_written_in_pieces_is_summed_as_a_whole() -> None:
    file = io.BytesIO()
    summed = Summed(file)
    assert summed.digest == "crc32:00000000"
    assert summed.write(b"1234") == 4
    assert summed.write(memoryview(b"56789")) == 5
    assert summed.digest == "crc32:cbf43926"
    assert file.getvalue() == b"123456789"


def test_a_file_of_several_pieces_has_the_digest_of_all_its_bytes(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(LARGE)
    assert digest_of_file(path) == digest_of_text(LARGE.decode())
    path.write_bytes(LARGE[:-1] + b"0")
    assert digest_of_file(path) != digest_of_text(LARGE.decode())


def test_text_is_summed_as_utf8() -> None:
    summed = Summed(io.BytesIO())
    summed.write(b"\xc3\xa9")
    assert digest_of_text("é") == summed.digest


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        digest_of_file(tmp_path / "none")
