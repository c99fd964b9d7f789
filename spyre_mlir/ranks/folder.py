"""A folder with the bundle of every rank, ``rank_0``, ``rank_1``, …; files that are equal share their bytes.

Decision: docs/decisions/0154-all-ranks-in-one-process.md
"""

from __future__ import annotations

import filecmp
import os
import re
from collections.abc import Sequence
from pathlib import Path

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError, ReadError

_RANK = re.compile(r"rank_(0|[1-9]\d*)")


def rank_folder(directory: Path, rank: int) -> Path:
    """Return the bundle directory of a rank."""
    return directory / f"rank_{rank}"


def rank_folders(directory: Path) -> list[Path]:
    """Return the bundle directories of all ranks, in order; none if the folder has none.

    Raises:
        ReadError: one is missing among them.
    """
    if not directory.is_dir():
        return []
    numbers = sorted(int(found[1]) for p in directory.iterdir() if (found := _RANK.fullmatch(p.name)) and p.is_dir())
    if numbers != list(range(len(numbers))):
        missing = next(n for n in range(len(numbers)) if n not in numbers)
        raise ReadError(
            f"the folder has {len(numbers)} ranks, and rank_{missing} is not among them",
            where=str(directory),
            hint="save all ranks",
        )
    return [rank_folder(directory, number) for number in numbers]


def save_ranks(models: CompiledModel | Sequence[CompiledModel], directory: str | Path) -> Path:
    """Write the bundles of all ranks; equal files share their bytes.

    Args:
        models: the compiled model of this rank, where every rank of the process group calls this; or, in one process,
            one compiled model per rank, in order.
        directory: the folder, the same for all ranks; made if need be.

    Raises:
        InputError: there is no model or no process group, or a directory holds something else.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(models, CompiledModel):
        from spyre_mlir.frontend import rank_and_count, wait_for_ranks

        rank, _ = rank_and_count(f"saving {models.name} by ranks")
        models.save(rank_folder(folder, rank))
        wait_for_ranks()
        if rank == 0:
            share_files(folder)
        wait_for_ranks()
        return folder
    if not models:
        raise InputError("no model is given", hint="save_ranks([model of rank 0, model of rank 1], directory)")
    for rank, model in enumerate(models):
        model.save(rank_folder(folder, rank))
    share_files(folder)
    return folder


def folder_of_this_rank(directory: Path) -> Path:
    """Return the bundle directory of the rank of this process, if a folder has one per rank; else the folder.

    Raises:
        InputError: there is no process group, or it has not as many ranks as the folder.
    """
    folders = rank_folders(directory)
    if not folders:
        return directory
    from spyre_mlir.frontend import rank_and_count

    rank, count = rank_and_count(f"{directory} has a bundle per rank: loading one")
    if count != len(folders):
        raise InputError(
            f"the folder has bundles of {len(folders)} ranks, and the process group has {count}",
            where=str(directory),
            hint=f"start {len(folders)} processes, torchrun --nproc-per-node {len(folders)}, or compile for {count}",
        )
    return folders[rank]


def share_files(directory: Path) -> int:
    """Give equal files of different ranks the same bytes on the disk, by hard links; return how many bytes that saves.

    A file that is edited in place changes for all ranks that share it. File systems without hard links keep copies.
    """
    known, saved = dict[tuple[str, int], list[Path]](), 0
    for folder in rank_folders(directory):
        for path in sorted(p for p in folder.rglob("*") if p.is_file() and not p.is_symlink()):
            size = path.stat().st_size
            others = known.setdefault((path.relative_to(folder).as_posix(), size), [])
            equal = next((o for o in others if o.samefile(path) or filecmp.cmp(o, path, shallow=False)), None)
            if equal is None:
                others.append(path)
            elif not equal.samefile(path):
                saved += size * _linked(equal, path)
    return saved


def _linked(source: Path, target: Path) -> bool:
    """Replace a file by a hard link to an equal one; return whether that worked."""
    made = target.with_name(f".{target.name}.shared")
    try:
        os.link(source, made)
    except OSError:
        return False
    made.replace(target)
    return True


__all__ = ["folder_of_this_rank", "rank_folder", "rank_folders", "save_ranks", "share_files"]
