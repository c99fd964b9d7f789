"""What a test registers is gone when it ends."""

from collections.abc import Iterator

import pytest

from spyre_mlir.plugins import registry


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    with registry.isolated():
        yield
