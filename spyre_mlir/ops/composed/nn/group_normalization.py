"""Normalisation of groups of channels.

Decision: docs/decisions/0203-means-of-groups-are-means-of-channels.md
"""

from __future__ import annotations

from math import prod

from spyre_mlir.ops.annotations import Bools, Number
from spyre_mlir.ops.aten import ATEN
from spyre_mlir.ops.build import Build
from spyre_mlir.ops.composed.nn.normalization import affine, as_the, computed_in, floored, normalized, per_channel
from spyre_mlir.ops.helpers.group_means import for_channels, gains_by_channels, group_means
from spyre_mlir.ops.ignored_arguments import CUDNN_ENABLED
from spyre_mlir.ops.table import Sample, require
from spyre_mlir.ops.value import Value

GROUP_NORM_BY_CHANNELS = "spyre::group_norm_by_channels"


def _grouped(
    b: Build,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    groups: int,
    eps: Number,
    *,
    by_channels: bool = False,
) -> tuple[Value, ...]:
    shape = input.shape
    wide = b.cast(input, like=computed_in(input, weight, bias))
    weight, bias = per_channel(weight, len(shape)), per_channel(bias, len(shape))
    if by_channels or gains_by_channels(wide, groups):
        return as_the(b, input, *_by_channels(b, wide, weight, bias, groups, eps))
    split = wide.view(shape[0], groups, shape[1] // groups, *shape[2:])
    out, mean, inverse = normalized(b, split, tuple(range(2, len(shape) + 1)), eps)
    return as_the(b, input, affine(out.view(*shape), weight, bias), mean, inverse)


def _by_channels(
    b: Build, image: Value, weight: Value | None, bias: Value | None, groups: int, eps: Number
) -> tuple[Value, ...]:
    mean = group_means(b, image, groups)
    centred = image - for_channels(mean, image)
    inverse = b.call("rsqrt", group_means(b, centred * centred, groups) + floored(eps))
    return affine(centred * affine(for_channels(inverse, image), weight, None), None, bias), mean, inverse


@ATEN.composed(aten=["group_norm"], ignores=[CUDNN_ENABLED])
def group_norm(
    b: Build,
    input: Value,
    weight: Value | None = None,
    bias: Value | None = None,
    *,
    num_groups: int,
    eps: Number = 1e-5,
) -> Value:
    """Normalisation of each group of channels of each entry of the batch."""
    return _grouped(b, input, weight, bias, num_groups, eps)[0]


@ATEN.composed(aten=[GROUP_NORM_BY_CHANNELS])
def group_norm_by_channels(
    b: Build,
    input: Value,
    weight: Value | None = None,
    bias: Value | None = None,
    *,
    num_groups: int,
    eps: Number = 1e-5,
) -> Value:
    """The same, with means of groups from those of their channels, which stay in the lanes."""
    return _grouped(b, input, weight, bias, num_groups, eps, by_channels=True)[0]


@ATEN.composed(aten=["native_group_norm"])
def native_group_norm(
    b: Build,
    input: Value,
    weight: Value | None = None,
    bias: Value | None = None,
    *,
    N: int,  # noqa: N803 # the names of ATen's schema
    C: int,  # noqa: N803
    HxW: int,  # noqa: N803
    group: int,
    eps: Number,
) -> tuple[Value, ...]:
    """Normalisation of each group of channels, the means, and one over the standard deviations.

    Constraints:
        C1: N, C and HxW are the extents of input, those behind the channels as one.
    """
    extents = (*input.shape[:2], prod(input.shape[2:]))
    require("C1", extents == (N, C, HxW), f"N, C, HxW are {(N, C, HxW)}, the extents are {extents}")
    out, mean, inverse = _grouped(b, input, weight, bias, group, eps)
    return out, mean.view(N, group), inverse.view(N, group)


@ATEN.composed(aten=["native_group_norm_backward"])
def native_group_norm_backward(
    b: Build,
    grad_out: Value,
    input: Value,
    mean: Value,
    rstd: Value,
    weight: Value | None = None,
    *,
    N: int,  # noqa: N803
    C: int,  # noqa: N803
    HxW: int,  # noqa: N803
    group: int,
    output_mask: Bools,
) -> tuple[Value, ...]:
    """Gradients of a group norm by its input, its weight and its bias: those that the mask asks for.

    The input is centred first: sums of products with it, which torch takes, cancel each other's leading digits.
    """
    flat, split = (N, C, HxW), (N, group, C // group * HxW)
    wide = mean if weight is None or weight.element == input.element else weight  # torch gives the wider type back
    grad_out, input, mean, rstd = as_the(b, wide, grad_out, input, mean, rstd)
    weight = None if weight is None else b.cast(weight, like=wide)
    value, gradient = input.reshape(*flat), grad_out.reshape(*flat)
    own_mean, own_rstd = mean.view(N, group, 1), rstd.view(N, group, 1)
    normal = (value.view(*split) - own_mean) * own_rstd
    out: list[Value] = []
    if output_mask[0]:
        scaled = gradient if weight is None else gradient * weight.view(C, 1)
        scaled = scaled.reshape(*split)
        sloped = b.call("mean.dim", scaled * normal, dim=(2,), keepdim=True)
        rest = scaled - b.call("mean.dim", scaled, dim=(2,), keepdim=True) - normal * sloped
        out.append((rest * own_rstd).reshape(*input.shape))
    if output_mask[1]:
        out.append((gradient * normal.reshape(*flat)).sum((0, 2)))
    if output_mask[2]:
        out.append(gradient.sum((0, 2)))
    return tuple(out)


_IMAGE = ((2, 6, 5, 3), (6,), (6,))
ATEN.samples(
    group_norm,
    Sample(_IMAGE, {"num_groups": 3}),
    Sample(_IMAGE, {"num_groups": 2, "eps": 0.5}),
    Sample(((2, 4, 65), None, None), {"num_groups": 2}),
)
ATEN.samples(
    group_norm_by_channels, Sample(_IMAGE, {"num_groups": 3}), Sample(((2, 4, 65), None, None), {"num_groups": 2})
)
ATEN.samples(
    native_group_norm_backward,
    Sample(
        ((2, 6, 5, 3), (2, 6, 5, 3), (2, 2), (2, 2), (6,)),
        {"N": 2, "C": 6, "HxW": 15, "group": 2, "output_mask": (True, True, True)},
    ),
)
_GROUPS = {"N": 2, "C": 6, "HxW": 15, "group": 2, "eps": 1e-5}
ATEN.samples(native_group_norm, Sample(_IMAGE, _GROUPS), Sample(_IMAGE, {**_GROUPS, "HxW": 5}, breaks="C1"))
