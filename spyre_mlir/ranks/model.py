"""The saved programs of all ranks, run in one process.

Decision: docs/decisions/0154-all-ranks-in-one-process.md
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError
from spyre_mlir.loaded import LoadedModel
from spyre_mlir.machine.meeting import Meeting
from spyre_mlir.options import CompileOptions
from spyre_mlir.ranks.folder import rank_folders
from spyre_mlir.sizes import counted
from spyre_mlir.text.notebook import ShownAsText


class RankedModel(ShownAsText):
    """The programs of all ranks, which a call runs one after the other; collectives need no process group.

    Attributes:
        ranks: the program of every rank.
    """

    def __init__(self, ranks: Sequence[CompiledModel]) -> None:
        """Keeps the programs, that of rank 0 first."""
        self.ranks = tuple(ranks)

    def __repr__(self) -> str:
        """One line: the name, and how many ranks there are."""
        return f"<RankedModel {self.ranks[0].name}: {counted(len(self.ranks), 'rank')}>"

    def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
        """Runs all ranks with the same inputs, and returns what each gives.

        Raises:
            MachineFault: ranks call different collectives, or wait for each other; or a program misbehaved.
            InputError: the inputs do not fit.
        """
        from spyre_mlir.frontend import untraced

        return untraced(self._call, args, kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> list[Any]:
        return Meeting(len(self.ranks)).run([partial(rank, *args, **kwargs) for rank in self.ranks])

    def run(self, inputs: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Run all ranks, each with inputs of its own, and return the results, rank by rank.

        Raises:
            MachineFault: as for a call.
            InputError: there are not as many inputs as ranks.
        """
        if len(inputs) != len(self.ranks):
            raise InputError(
                f"{len(inputs)} inputs are given for {len(self.ranks)} ranks", hint="give one tuple per rank"
            )
        calls = [partial(rank, *given) for rank, given in zip(self.ranks, inputs, strict=True)]
        return Meeting(len(self.ranks)).run(calls)


def load_ranks(directory: str | Path, *, check: bool = True, **choices: Any) -> RankedModel:
    """Give back the programs of all ranks from a folder, to run them in one process.

    Args:
        directory: holds ``rank_0``, ``rank_1``, …, each a bundle directory.
        check: whether they are checked before they run.
        **choices: as for `load`.

    Raises:
        InputError: the folder has no ranks, or a bundle breaks a rule.
        ReadError: a rank is missing, or a file is not what its name says.
    """
    folder = Path(directory)
    found = rank_folders(folder)
    if not found:
        raise InputError(
            "there is no rank_0 in this folder", where=str(folder), hint="save_ranks writes one; load reads one bundle"
        )
    options = CompileOptions.of_calls(choices, by="load_ranks")
    return RankedModel([LoadedModel(each, options, check=check) for each in found])


__all__ = ["RankedModel", "load_ranks"]
