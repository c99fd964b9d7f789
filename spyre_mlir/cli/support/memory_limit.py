"""Memory limit of a tool: an allocation of the size a file merely claims is refused.

Decision: docs/decisions/0113-limits-of-the-operating-system.md
"""

from __future__ import annotations

import argparse
import os
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spyre_mlir.sizes import read_size

# With less, the libraries that the tools load end the process by themselves.
LEAST = 256 << 20
_CGROUP = Path("/sys/fs/cgroup/memory.max")


def size(text: str) -> int:
    """Parse bytes from a number with or without a unit: 800M, 16G."""
    try:
        return read_size(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def limit_size(text: str) -> int:
    """Parse a limit, which leaves the tools what they take themselves."""
    if (found := size(text)) < LEAST:
        raise argparse.ArgumentTypeError(f"{text} is less than the tools take themselves, expected 256M or more")
    return found


def machine_memory() -> int:
    """Return the bytes of memory that this process can have at most."""
    physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        given = _CGROUP.read_text().strip()
    except OSError:
        return physical
    return min(physical, int(given)) if given.isdigit() else physical


def add_memory_limit(parser: Any) -> None:
    """Give a tool `--memory-limit`."""
    parser.add_argument(
        "--memory-limit",
        type=limit_size,
        default=None,
        metavar="SIZE",
        help="fail when more memory than this is requested, such as 800M or 16G (default: all memory of the machine)",
    )


def limit_memory(limit: int | None) -> None:
    """Makes allocations beyond a limit fail, until `memory_restored` ends."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    wanted = machine_memory() if limit is None else limit
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


def memory_to_spare() -> None:
    """Make room for the messages that follow once the limit has been reached."""
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


@contextmanager
def memory_restored() -> Generator[None]:
    """Restore the limit on exit, for a tool that runs inside another program."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
