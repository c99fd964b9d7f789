"""A whole run over the database: in shards, resumable, and nothing a sample does can stop it."""

from __future__ import annotations

import multiprocessing as mp
import resource
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from tests.opinfo.core import LEFT_OUT, PREFIX, core_cases, core_overloads, noted_calls
from tests.opinfo.judge import SECONDS, judge
from tests.opinfo.samples import DTYPES, SAMPLES, Case, cases, database, spread
from tests.opinfo.store import Store
from tests.states import code_digest

MEMORY = 12 << 30  # of addresses: ordering 8,000 integers compares all with all, in 8 GB
# A process that holds so much between two rows is replaced: what thousands of samples leave behind is not the next's.
HELD = MEMORY // 2
PAGES_HELD = Path("/proc/self/statm")
# A process is killed after so many seconds, and so many times a sample's limit: it hangs, or the machine is very busy.
GRACE, SLACK = 60, 6
Row = tuple[str, str]


@dataclass(frozen=True)
class Plan:
    """What a run tries.

    Attributes:
        dtypes: dtypes of entries of the database; core overloads are tried with float32 only.
        count: samples of a row.
        first: of these, how many are tried in this run, evenly spread.
        shard: which part of the rows, and of how many.
        again: statuses that are tried again by another state of the code; ``fresh`` tries everything again.
        seconds: time limit of a sample; ``minutes`` one for the run.
        only: names of ops, or of rows as ``op/dtype``; all if empty.
    """

    dtypes: tuple[str, ...] = tuple(DTYPES)
    count: int = SAMPLES
    first: int = SAMPLES
    shard: tuple[int, int] = (0, 1)
    again: frozenset[str] = field(default_factory=frozenset)
    fresh: bool = False
    device: bool = True
    seconds: int = SECONDS
    minutes: float = float("inf")
    core: bool = True
    only: tuple[str, ...] = ()

    def rows(self) -> Iterator[Row]:
        """The rows in the order they are tried: core overloads first, then float32."""
        for name, dtype in self._all():
            mine = zlib.crc32(f"{name}/{dtype}".encode()) % self.shard[1] == self.shard[0]
            if mine and (not self.only or name in self.only or f"{name}/{dtype}" in self.only):
                yield name, dtype

    def _all(self) -> Iterator[Row]:
        if self.core:
            yield from ((PREFIX + n, "float32") for n in core_overloads() if n not in LEFT_OUT)
        core = {n.partition(".")[0] for n in core_overloads()}
        names = sorted(database(), key=lambda n: database()[n].aten_name not in core)
        yield from ((n, "float32") for n in names if "float32" in self.dtypes)
        yield from ((n, d) for n in names for d in self.dtypes if d != "float32")


def row_cases(name: str, dtype: str, count: int) -> list[Case]:
    if name.startswith(PREFIX):
        return list(core_cases(name.removeprefix(PREFIX), count))
    return list(cases(name, dtype, count))


def run(plan: Plan, store: Store) -> Iterator[dict[str, Any]]:
    """Runs what is not done yet, and gives every new record."""
    torch.set_num_threads(1)
    rows = [row for row in plan.rows() if _pending(row, plan, store)]
    if any(name.startswith(PREFIX) for name, _ in rows):
        noted_calls(())  # before forking: every child has them, and none notes them again
    end = time.monotonic() + plan.minutes * 60
    while rows and time.monotonic() < end:
        child = _Child(plan, store, rows)
        try:
            for record in child.records(end):
                if record is None:
                    rows.pop(0)
                    continue
                store.add(record)
                if "row" not in record:
                    yield record
        finally:
            child.stop()


def _pending(row: Row, plan: Plan, store: Store) -> bool:
    name = "/".join(row)
    count = store.rows.get(name)
    return count is None or len(store.done(name, plan.again, plan.fresh)) < min(count, plan.first)


class _Child:
    """A process that judges rows one after another and says what it is at, so that the parent can end it."""

    def __init__(self, plan: Plan, store: Store, rows: list[Row]) -> None:
        self._plan = plan
        self._receive, send = mp.Pipe(duplex=False)
        self._process = mp.get_context("fork").Process(target=_work, args=(plan, store, list(rows), send), daemon=True)
        self._process.start()
        send.close()

    def records(self, end: float) -> Iterator[dict[str, Any] | None]:
        """Records, and None after the last one of a row, until the child is through, dead or stuck."""
        at: str | None = None
        while time.monotonic() < end:
            limit = SLACK * self._plan.seconds + GRACE if at else 10 * GRACE
            try:
                if not self._receive.poll(limit):
                    yield _lost(at, "slow", f"more than {limit} s") if at else None
                    return
                kind, value = self._receive.recv()
            except EOFError:
                if at:
                    yield _lost(at, "crash", "the process died")
                return
            at = value if kind == "at" else None
            if kind != "at":
                yield value

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self._receive.close()


def _lost(key: str, status: str, detail: str) -> dict[str, Any]:
    return {"key": key, "status": status, "detail": detail, "code": code_digest(), "support": ""}


def _work(plan: Plan, store: Store, rows: list[Row], send: Connection) -> None:
    """The child: judges every sample of the rows that is not done."""
    inherited = _addresses()  # of the process that it is a copy of
    resource.setrlimit(resource.RLIMIT_AS, (inherited + MEMORY, inherited + MEMORY))
    for name, dtype in rows:
        row = f"{name}/{dtype}"
        found = row_cases(name, dtype, plan.count)
        send.send(("record", {"row": row, "count": len(found)}))
        done = store.done(row, plan.again, plan.fresh)
        for case in spread(found, plan.first):
            if case.key in done:
                continue
            send.send(("at", case.key))
            begin = time.monotonic()
            outcome = judge(case, device=plan.device, seconds=plan.seconds)
            record = outcome.record() | {"code": code_digest(), "seconds": round(time.monotonic() - begin, 2)}
            send.send(("record", record))
        send.send(("record", None))
        if _addresses() - inherited > HELD:
            return


def _addresses() -> int:
    """Bytes of addresses that this process holds; 0 where the system does not say."""
    return int(PAGES_HELD.read_text().split()[0]) * resource.getpagesize() if PAGES_HELD.exists() else 0
