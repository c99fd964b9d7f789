"""Which writes to scratch memory spoil what a launch reads: `read-whole` beyond what a bundle by hand shows."""

from typing import Any, cast

import pytest

from spyre_mlir.backend.check.scratch_rules import _Range, _Read  # pyright: ignore[reportPrivateUsage]

NOBODY = cast(Any, None)


def bytes_from(first: int, last: int) -> _Range:
    return _Range(None, first, last)


# What is read is bytes 100 to 199; the writes, the oldest first.
WRITES = {
    "the whole result": ([(100, 199)], False),
    "a part behind the result": ([(100, 199), (150, 299)], True),
    "a part before the result": ([(100, 199), (0, 149)], True),
    "some rows within it": ([(100, 199), (120, 139)], False),
    "an older one": ([(150, 299), (100, 199)], False),
    # A short result in a buffer that others had: the rest of what is read is padding, whatever lies there.
    "older ones behind a short result": ([(100, 299), (50, 149), (100, 119)], False),
    "a part of a short result": ([(100, 299), (100, 139), (50, 119)], True),
}


@pytest.mark.parametrize("name", WRITES)
def test_what_spoils_a_result(name: str) -> None:
    writes, spoilt = WRITES[name]
    read = _Read(NOBODY, NOBODY, bytes_from(100, 199), [bytes_from(*w) for w in writes])
    assert read.spoilt() is spoilt
