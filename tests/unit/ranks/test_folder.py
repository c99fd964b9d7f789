"""Folders with a bundle per rank: what is shared, what is missing, and which of them a process loads."""

from __future__ import annotations

from pathlib import Path

import pytest

import spyre_mlir
from spyre_mlir.errors import InputError, ReadError
from spyre_mlir.ranks.folder import rank_folders, save_ranks, share_files
from tests.unit.ranks.compiled import as_rank


def files(folder: Path, texts: dict[str, str]) -> None:
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / name).write_text(text)


def test_equal_files_of_ranks_share_their_bytes(tmp_path: Path) -> None:
    files(tmp_path / "rank_0", {"a": "same", "b": "of 0", "c": "four"})
    files(tmp_path / "rank_1", {"a": "same", "b": "of 1", "d": "four"})
    assert share_files(tmp_path) == 4
    assert (tmp_path / "rank_0" / "a").samefile(tmp_path / "rank_1" / "a")
    assert [(tmp_path / f"rank_{n}" / "b").read_text() for n in (0, 1)] == ["of 0", "of 1"]
    assert not (tmp_path / "rank_1" / "d").samefile(tmp_path / "rank_0" / "c"), "names differ"
    assert share_files(tmp_path) == 0


def test_a_rank_that_is_missing(tmp_path: Path) -> None:
    files(tmp_path / "rank_0", {})
    files(tmp_path / "rank_2", {})
    with pytest.raises(ReadError, match="the folder has 2 ranks, and rank_1 is not among them"):
        rank_folders(tmp_path)


def test_loading_the_bundle_of_a_rank(tmp_path: Path) -> None:
    for rank in (0, 1):
        files(tmp_path / f"rank_{rank}", {"bundle.mlir": ""})
    with pytest.raises(InputError, match="has a bundle per rank: loading one needs a process group") as refused:
        spyre_mlir.load(tmp_path)
    assert "load_ranks" in str(refused.value.hint)
    with as_rank(0, 3), pytest.raises(InputError, match="bundles of 2 ranks, and the process group has 3"):
        spyre_mlir.load(tmp_path)


def test_nothing_to_save(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no model is given"):
        save_ranks([], tmp_path)
