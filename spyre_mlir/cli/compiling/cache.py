"""`spyre-compile --cache-info` and `--clear-cache`: the cache of lowered programs."""

from __future__ import annotations

import argparse

from spyre_mlir.cli.support.lists import print_list

COLUMNS = ("what", "value")
_ALLOWED = ("cache_info", "clear_cache", "verbose", "memory_limit")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """The flags of this module."""
    parser.add_argument(
        "--cache-info", action="store_true", help="show where the cache is and how much it holds; compile nothing"
    )
    parser.add_argument("--clear-cache", action="store_true", help="empty the cache; compile nothing")


def wanted(arguments: argparse.Namespace) -> bool:
    """Return whether the call is about the cache."""
    return bool(arguments.cache_info or arguments.clear_cache)


def check(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Refuse options that have no meaning with `--cache-info` and `--clear-cache`."""
    flag = "--clear-cache" if arguments.clear_cache else "--cache-info"
    for name, value in vars(arguments).items():
        if name not in _ALLOWED and value != parser.get_default(name):
            what = "a model" if name == "model" else f"--{name.replace('_', '-')}"
            parser.error(f"{flag} compiles nothing, so {what} means nothing beside it")


def run(arguments: argparse.Namespace) -> int:
    """Empty the cache, if that is asked for, and print what it holds.

    Raises:
        InputError: an entry cannot be removed, or the environment asks for a cache of no size.
    """
    from spyre_mlir.cache.contents import cache_info, clear_cache

    found = clear_cache() if arguments.clear_cache else cache_info()
    if found.directory is None:
        print_list(COLUMNS, [("directory", "off")])
        return 0
    rows = [("directory", str(found.directory))]
    if arguments.clear_cache:
        rows += [("removed entries", str(found.entries)), ("removed bytes", str(found.size))]
    else:
        rows += [("entries", str(found.entries)), ("bytes", str(found.size)), ("most bytes", str(found.limit))]
    print_list(COLUMNS, rows)
    return 0
