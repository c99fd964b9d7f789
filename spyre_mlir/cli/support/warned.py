"""Warnings that packages give through `warnings`, said as the tools say theirs."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager

log = logging.getLogger("spyre_mlir.cli")


@contextmanager
def warnings_logged(*kinds: type[Warning], hidden: type[Warning] | None = None) -> Generator[None]:
    """Log warnings of some kinds that come inside the block, when it has succeeded; the rest come at its end.

    Args:
        *kinds: which are logged.
        hidden: a kind that is not said at all.
    """
    with warnings.catch_warnings(record=True) as told:
        for kind in kinds:
            warnings.simplefilter("always", kind)
        if hidden is not None:
            warnings.simplefilter("ignore", hidden)
        yield
    for one in told:
        if issubclass(one.category, kinds):
            log.warning("%s", one.message)
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


__all__ = ["warnings_logged"]
