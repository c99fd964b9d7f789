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
    return image.rank > 2 and image.shape[0] == 1 and fill_lanes(image.shape[1], groups)


def fill_lanes(channels: int, groups: int) -> bool:
    """Return whether so many channels fill the lanes, in groups that would have to divide these."""
    return channels >= _LANES and groups < channels


def group_means(b: Build, image: Value, groups: int) -> Value:
    """[batch, group, 1]: means over places, then over the channels of a group, of [batch, channel, places…]."""
    own = b.call("mean.dim", image, dim=tuple(range(2, image.rank)), keepdim=False)
    return b.call("mean.dim", own.view(image.shape[0], groups, image.shape[1] // groups), dim=(2,), keepdim=True)


def for_channels(of_groups: Value, image: Value) -> Value:
    """[batch, channel, 1…]: what [batch, group, 1] has for the group of each channel of an image."""
    (batch, channels), groups = image.shape[:2], of_groups.shape[1]
    return of_groups.expand(batch, groups, channels // groups).reshape(batch, channels, *(1,) * (image.rank - 2))
