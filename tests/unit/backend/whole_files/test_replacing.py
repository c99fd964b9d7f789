"""Directories that are replaced: permissions, links, forks, writers that are killed, and what they leave."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

import spyre_mlir
from spyre_mlir.backend.whole_files import replacing as module
from spyre_mlir.backend.whole_files.replacing import exchanged, replacing
from spyre_mlir.backend.whole_files.whole_file import write_whole
from tests.paths import ROOT


def write(directory: Path, text: str) -> None:
    with replacing(directory) as made:
        (made / "bundle.mlir").write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_directory_has_the_permissions_of_new_directories(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        write(tmp_path / "b", "")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "b").stat().st_mode) == 0o777 & ~mask


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    write(tmp_path / "real", "old")
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "bundle.mlir").read_text() == "new"
    assert names(tmp_path) == ["link", "real"]


def test_folders_and_large_files_are_on_the_disk_before_they_appear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If asked for; what a power cut does to small files is found by their digests."""
    synced: list[tuple[bool, int]] = []

    def note(descriptor: int) -> None:
        assert not (tmp_path / "b").exists()
        about = os.fstat(descriptor)
        synced.append((stat.S_ISDIR(about.st_mode), 0 if stat.S_ISDIR(about.st_mode) else about.st_size))

    monkeypatch.setattr(os, "fsync", note)
    with replacing(tmp_path / "b", durable=True) as made:
        (made / "inside").mkdir()
        (made / "inside" / "large").write_bytes(bytes(1 << 20))
        (made / "small").write_bytes(bytes((1 << 20) - 1))
    assert sorted(synced) == [(False, 1 << 20), (True, 0), (True, 0)]
    synced.clear()
    write(tmp_path / "c", "")
    assert synced == []


def test_a_link_to_a_file_stays(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_whole(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


KILLED = """
import os, signal, sys
from pathlib import Path
from spyre_mlir.backend.whole_files.replacing import replacing
moves = 0
def kill(event, arguments):
    global moves
    moves += event == "os.rename" and str(arguments[1]).startswith(sys.argv[1] + "/b")
    moves += event == "os.rename" and str(arguments[0]) == sys.argv[1] + "/b"
    if moves == 1 and event == "os.rename" and str(arguments[0]) != sys.argv[1] + "/b" and os.path.exists(arguments[0]):
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(kill)
with replacing(Path(sys.argv[1]) / "b") as made:
    (made / "bundle.mlir").write_text("new")
    if sys.argv[2] == "early":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("when", ["early", "between"])
def test_there_is_an_old_or_a_new_one_at_every_moment(when: str, tmp_path: Path) -> None:
    """Killed while it writes, and where one name has been moved and the other has not."""
    write(tmp_path / "b", "old")
    command = [sys.executable, "-c", KILLED, str(tmp_path), when]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    left = (tmp_path / "b" / "bundle.mlir").read_text()
    assert (left, done.returncode) == (("old", -signal.SIGKILL) if when == "early" else ("new", 0))
    assert len(names(tmp_path)) == (2 if when == "early" else 1)
    write(tmp_path / "b", "newer")
    assert names(tmp_path) == ["b"]  # what the dead writer left is gone


def test_folders_of_writers_that_live_stay(tmp_path: Path) -> None:
    with replacing(tmp_path / "b") as made:
        (made / "bundle.mlir").write_text("slow")
        write(tmp_path / "b", "fast")
        assert made.exists()
    assert (tmp_path / "b" / "bundle.mlir").read_text() == "slow"
    (tmp_path / ".b-12345678").mkdir()  # its writer may be about to lock a file in it
    write(tmp_path / "b", "new")
    assert names(tmp_path) == [".b-12345678", "b"]


@pytest.mark.parametrize("file", [None, ".writer.new"])
def test_old_folders_whose_writers_were_killed_without_a_lock_go_when_the_next_save_starts(
    file: str | None, tmp_path: Path
) -> None:
    left = tmp_path / ".b-12345678"
    (left / "made").mkdir(parents=True)
    if file is not None:
        (left / file).touch()
    os.utime(left, (1e9, 1e9))
    with replacing(tmp_path / "b"):
        assert not left.exists()


def test_where_names_cannot_be_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "exchanged", lambda first, second: False)
    write(tmp_path / "b", "old")
    write(tmp_path / "b", "new")
    assert (tmp_path / "b" / "bundle.mlir").read_text() == "new"
    assert names(tmp_path) == ["b"]


def test_exchanging_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="No such file"):
        exchanged(tmp_path / "a", tmp_path / "b")


def compiled_linear() -> tuple[spyre_mlir.CompiledModel, torch.Tensor]:
    x = torch.randn(4, 8)
    compiled = spyre_mlir.compile(torch.nn.Linear(8, 8), (x,))
    assert isinstance(compiled, spyre_mlir.CompiledModel)
    return compiled, x


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes that are copies")
def test_the_end_of_a_fork_leaves_the_files_of_its_parent() -> None:
    code = """
import os, sys, torch, spyre_mlir
x = torch.randn(4, 8)
compiled = spyre_mlir.compile(torch.nn.Linear(8, 8), (x,))
folder = compiled.bundle_directory()
child = os.fork()
if child == 0:
    assert compiled.bundle_directory() != folder
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert folder.is_dir()
parent = folder.parent
del compiled
import gc; gc.collect()
assert not parent.exists()
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment, check=False)
    assert done.returncode == 0


def test_several_threads_compile_at_once() -> None:
    before, failed = sys.stderr, list[BaseException]()

    def work(width: int) -> None:
        try:
            model, x = torch.nn.Sequential(torch.nn.Linear(width, 16), torch.nn.ReLU()), torch.randn(4, width)
            compiled = spyre_mlir.compile(model, (x,), numerics="exact")
            assert torch.allclose(compiled(x), model(x), atol=1e-5)
        except BaseException as error:  # noqa: BLE001 - what a thread raises is told by the test
            failed.append(error)

    threads = [threading.Thread(target=work, args=(8 * (n + 1),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert sys.stderr is before
