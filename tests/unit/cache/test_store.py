"""Entries on disk: whole or not there, never of another key, the least recently used first to go."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from spyre_mlir.cache.store import DamagedEntryError, Store, Usage

A, B, C = "a" * 64, "b" * 64, "c" * 64


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "cache", 1000)


def names(store: Store) -> set[str]:
    return {path.name for path in store.directory.iterdir()}


def used(store: Store, key: str, second: int) -> None:
    os.utime(store.path(key), (second, second))


def test_what_was_written_is_read(store: Store) -> None:
    assert store.read(A) is None
    assert store.write(A, b"one") and store.write(B, b"")
    assert (store.read(A), store.read(B), store.read(C)) == (b"one", b"", None)
    assert names(store) == {f"{A}.entry", f"{B}.entry"}


def test_the_directory_is_made_for_its_user_alone(store: Store) -> None:
    store.write(A, b"one")
    assert store.directory.stat().st_mode & 0o777 == 0o700
    assert store.path(A).stat().st_mode & 0o777 == 0o600


def test_an_entry_is_replaced(store: Store) -> None:
    store.write(A, b"one")
    store.write(A, b"two")
    assert store.read(A) == b"two"
    assert names(store) == {f"{A}.entry"}


def test_every_flipped_byte_is_found(store: Store) -> None:
    store.write(A, b"content")
    path = store.path(A)
    whole = path.read_bytes()
    for place in range(len(whole)):
        spoiled = bytearray(whole)
        spoiled[place] ^= 1
        path.write_bytes(spoiled)
        with pytest.raises(DamagedEntryError):
            store.read(A)


def test_every_cut_is_found(store: Store) -> None:
    store.write(A, b"content")
    path = store.path(A)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(DamagedEntryError):
            store.read(A)
    path.write_bytes(whole + b"\0")
    with pytest.raises(DamagedEntryError, match="digest"):
        store.read(A)


def test_an_entry_under_the_name_of_another_is_found(store: Store) -> None:
    store.write(A, b"one")
    store.write(B, b"two")
    store.path(A).replace(store.path(B))
    with pytest.raises(DamagedEntryError, match="digest"):
        store.read(B)


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    store = Store(tmp_path, 1000)
    for second, key in enumerate((A, B, C)):
        store.write(key, bytes(250))
        used(store, key, second)
    assert store.read(A) is not None  # it is used now
    store.write("d" * 64, bytes(250))
    assert names(store) == {f"{key}.entry" for key in (A, C, "d" * 64)}


def test_as_much_stays_as_the_limit_allows(tmp_path: Path) -> None:
    entry = len("spyre-mlir cache entry\n") + 32 + 100
    store = Store(tmp_path, 2 * entry)
    for second, key in enumerate((A, B, C)):
        store.write(key, bytes(100))
        used(store, key, second)
    assert names(store) == {f"{B}.entry", f"{C}.entry"}
    assert store.usage() == Usage(2, 2 * entry)


def test_a_new_entry_stays_whatever_the_clock_says(tmp_path: Path) -> None:
    store = Store(tmp_path, 500)
    for key in (A, B):
        store.write(key, bytes(150))
        used(store, key, 1 << 40)
    store.write(C, bytes(150))
    assert f"{C}.entry" in names(store)
    assert len(names(store)) == 2


def test_what_is_larger_than_the_limit_is_not_written(store: Store) -> None:
    store.write(A, b"one")
    assert not store.write(B, bytes(1000))
    assert names(store) == {f"{A}.entry"}


def test_a_failing_write_leaves_the_old_entry_and_nothing_else(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.write(A, b"one")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert not store.write(A, b"two")
    assert store.read(A) == b"one"
    assert names(store) == {f"{A}.entry"}


def test_a_directory_that_cannot_be_made_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    store = Store(tmp_path / "file" / "cache", 1000)
    with caplog.at_level(logging.INFO, "spyre_mlir.cache"):
        assert not store.write(A, b"one")
        assert store.read(A) is None
    assert "not cached" in caplog.text
    assert "cannot be read" in caplog.text
    assert (store.usage(), store.clear()) == (Usage(0, 0), Usage(0, 0))


def test_what_a_killed_writer_left_goes_when_it_is_old(store: Store) -> None:
    store.write(A, b"one")
    old, new = (store.directory / f".{B}-{n}.part" for n in ("old", "new"))
    old.touch()
    new.touch()
    os.utime(old, (0, 0))
    store.write(C, b"one")
    assert names(store) == {f"{A}.entry", f"{C}.entry", new.name}


def test_clearing_removes_entries_and_nothing_else(store: Store) -> None:
    store.write(A, b"one")
    store.write(B, b"two")
    left = [store.directory / name for name in ("notes.txt", "x.entry", f"{A}.entry.bak")]
    for path in left:
        path.touch()
    (store.directory / f".{C}-x.part").touch()
    (store.directory / f"{C}.entry").mkdir()
    size = 2 * (len("spyre-mlir cache entry\n") + 32 + 3)
    assert store.usage() == store.clear() == Usage(2, size)
    assert names(store) == {path.name for path in left} | {f"{C}.entry"}


def test_a_key_is_met_once_and_known_from_then_on(store: Store) -> None:
    assert (store.met(A), store.met(B)) == (False, False)
    assert Store(store.directory, store.limit).met(A) and store.met(B)
    assert (store.usage(), store.read(A)) == (Usage(0, 0), None)
    assert store.directory.stat().st_mode & 0o777 == 0o700


def test_met_keys_are_forgotten_when_they_are_many_or_cleared(store: Store) -> None:
    store.met(A)
    (store.directory / "met-once").write_bytes(f"{A}\n".encode() * 2000)
    assert store.met(A)
    assert not store.met(B)
    assert (store.met(B), store.met(A)) == (True, False)
    store.clear()
    assert names(store) == set()
    assert not store.met(B)


def test_where_nothing_can_be_written_no_key_is_met(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in the place of the directory")
    store = Store(tmp_path / "cache", 1000)
    assert (store.met(A), store.met(A)) == (False, False)
