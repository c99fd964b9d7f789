"""Means of groups of channels by those of their channels, which stay in the lanes.

Decision: docs/decisions/0203-means-of-groups-are-means-of-channels.md
"""

from __future__ import annotations

from spyre_mlir.hw.formats import DL16
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.value import Value

_LANES = DL16.elements_per_stick()


def gains_by_channels(image: Value, groups: int) -> bool:
    """Return whether channels of one image fill the lanes, in groups that would have to divide these."""
    if image.rank < 3:
        return False
    batch, channels = image.shape[:2]
    return batch == 1 and channels >= _LANES and groups < channels


def group_means(b: Build, image: Value, groups: int) -> Value:
    """[1, group, 1]: means over places, then over the channels of a group, of [1, channel, places…]."""
    own = b.call("mean.dim", image, dim=tuple(range(2, image.rank)), keepdim=False)
    return b.call("mean.dim", own.view(1, groups, image.shape[1] // groups), dim=(2,), keepdim=True)


def for_channels(of_groups: Value, image: Value) -> Value:
    """[1, channel, 1…]: what [1, group, 1] has for the group of each channel of an image."""
    groups, channels = of_groups.shape[1], image.shape[1]
    return of_groups.expand(1, groups, channels // groups).reshape(1, channels, *(1,) * (image.rank - 2))
