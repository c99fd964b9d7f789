"""How two readings of a file's addresses are compared."""

import numpy as np
import pytest

from tests.emitted import assert_same

COORDS = {"mb": np.asarray([0, 0, 1, 1]), "out": np.asarray([2, 3, 2, 3])}
ADDRESSES = np.asarray([0, 2, 4, 6])


def reordered(order: list[int]) -> dict[str, np.ndarray]:
    return {name: values[order] for name, values in COORDS.items()}


def test_the_order_of_elements_does_not_matter() -> None:
    assert_same("file", COORDS, ADDRESSES, reordered([3, 1, 0, 2]), ADDRESSES[[3, 1, 0, 2]])
    assert_same("file", {}, np.asarray([8]), {}, np.asarray([8]))


@pytest.mark.parametrize(
    ("order", "addresses"),
    [
        ([0, 1, 2, 3], [0, 2, 4, 8]),  # another address
        ([0, 1, 3, 2], [0, 2, 4, 6]),  # two exchanged
        ([0, 0, 1, 2], [0, 0, 2, 4]),  # an element twice, one not at all
        ([0, 1, 2], [0, 2, 4]),
    ],
)
def test_a_difference_is_seen(order: list[int], addresses: list[int]) -> None:
    with pytest.raises(AssertionError):
        assert_same("file", COORDS, ADDRESSES, reordered(order), np.asarray(addresses))
