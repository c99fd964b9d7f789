"""Results of a run: one JSON line per sample, in files of a directory that several processes may write to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.states import code_digest

Record = dict[str, Any]


class Store:
    """The results in a directory; a shard appends to a file of its own.

    Attributes:
        samples: the last result of every sample, by its key.
        rows: how many samples there are of an op at a dtype, by ``op/dtype``.
    """

    def __init__(self, directory: Path, shard: str = "") -> None:
        """Reads what there is."""
        directory.mkdir(parents=True, exist_ok=True)
        self._file = directory / f"results-{shard.replace('/', '-of-') or 'all'}.jsonl"
        self.samples: dict[str, Record] = {}
        self.rows: dict[str, int] = {}
        for path in sorted(directory.glob("results-*.jsonl"), key=lambda p: p.stat().st_mtime):
            for line in path.read_text(encoding="utf-8").splitlines():
                self._take(line)

    def _take(self, line: str) -> None:
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            return  # a line that a killed process did not finish
        if "row" in record:
            self.rows[record["row"]] = record["count"]
        else:
            self.samples[record["key"]] = record

    def add(self, record: Record) -> None:
        """Keeps a record, here and in the file."""
        line = json.dumps(record)
        self._take(line)
        with self._file.open("a", encoding="utf-8") as stream:
            stream.write(line + "\n")

    def done(self, row: str, again: frozenset[str], fresh: bool) -> frozenset[str]:
        """Samples of a row that need not run.

        Args:
            row: ``op/dtype``.
            again: statuses that are tried again by another state of the code.
            fresh: whether everything is tried again by another state of the code.
        """
        return frozenset(
            key
            for key, r in self.samples.items()
            if key.rpartition("/")[0] == row and (r["code"] == code_digest() or not (fresh or r["status"] in again))
        )
