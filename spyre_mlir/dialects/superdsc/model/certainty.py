"""Certainty of one SuperDSC by the public record: the weakest claim that its meaning rests on.

Each feature of the format that a kernel can rely on is declared once, with its certainty and its source. A feature
that every file has, and real files show, is not listed: it is certain.

Decision: docs/decisions/0031-what-sources-do-not-settle.md
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spyre_mlir.dialects.superdsc.model import keys
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, OpClass
from spyre_mlir.hw.certainty import Tag
from spyre_mlir.hw.formats import DL16, FP32, INDEX
from spyre_mlir.ops.hardware_functions import function_of

_CODE = "torch-spyre code generation; no public file has it"
_NEWEST = "newest torch-spyre code generation; no public file has it"


@dataclass(frozen=True)
class Feature:
    """An optional feature of a file.

    Args:
        name: what it is, in the words of the reference page.
        tag: how sure its form and meaning are.
        source: where both come from.
        used: whether a descriptor relies on it.
    """

    name: str
    tag: Tag
    source: str
    used: Callable[[Descriptor], bool]


@dataclass(frozen=True)
class Certainty:
    """The weakest tag of a kernel, and the features that cause it.

    Args:
        tag: the weakest of all that the kernel relies on.
        reasons: the features with that tag; empty when the kernel is certain.
    """

    tag: Tag
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        """The tag, and the features in brackets."""
        return f"{self.tag.value} ({', '.join(self.reasons)})" if self.reasons else self.tag.value


def certainty_of(descriptor: Descriptor) -> Certainty:
    """Return the weakest certainty that the descriptor's file relies on."""
    found = [(feature.tag, feature.name) for feature in features_of(descriptor)]
    found.append(_function(descriptor))
    weakest = Tag.weakest(tag for tag, _ in found)
    if weakest is Tag.CERTAIN:
        return Certainty(weakest)
    return Certainty(weakest, tuple(name for tag, name in found if tag is weakest))


def features_of(descriptor: Descriptor) -> tuple[Feature, ...]:
    """Return the listed features that a descriptor relies on."""
    return tuple(feature for feature in FEATURES if feature.used(descriptor))


def _function(descriptor: Descriptor) -> tuple[Tag, str]:
    known = function_of(descriptor.op_func_name)
    return (Tag.INFERRED if known is None else known.tag, f"function {descriptor.op_func_name}")


def _formats(descriptor: Descriptor) -> frozenset[str]:
    return frozenset(operand.format for operand in descriptor.operands)


def _is_reduction(descriptor: Descriptor) -> bool:
    return descriptor.op_class is OpClass.REDUCTION


def _divides_a_reduction(descriptor: Descriptor) -> bool:
    dims = [dim for dim in descriptor.dims if dim.label not in descriptor.output.order]
    return _is_reduction(descriptor) and any(dim.split > 1 for dim in dims)


def _moves_in_hbm(descriptor: Descriptor) -> bool:
    return descriptor.op_class is OpClass.RESTICKIFY and any(
        count != dim.extent
        for operand in descriptor.operands
        if operand.component == keys.HBM
        for label, count in zip(operand.order, operand.extents, strict=True)
        for dim in (descriptor.dim(label),)
    )


def _moves_wide_elements(descriptor: Descriptor) -> bool:
    return descriptor.op_class is OpClass.RESTICKIFY and FP32.name in _formats(descriptor)


def _is_gather(descriptor: Descriptor) -> bool:
    return any(operand.indirect is not None for operand in descriptor.operands)


def _limits_sizes(descriptor: Descriptor) -> bool:
    links = [operand.indirect for operand in descriptor.operands if operand.indirect is not None]
    return any(limit > 1 for link in links for limit in link.max_sizes)


FEATURES: tuple[Feature, ...] = (
    Feature("named constants", Tag.LIKELY, _CODE, lambda view: bool(view.constants)),
    Feature("masked padding", Tag.LIKELY, _CODE, lambda view: any(dim.valid is not None for dim in view.dims)),
    Feature("reduction", Tag.LIKELY, _CODE, _is_reduction),
    Feature("reduction divided over cores", Tag.LIKELY, _CODE, _divides_a_reduction),
    Feature("FP32 operands", Tag.LIKELY, _CODE, lambda view: FP32.name in _formats(view)),
    Feature(
        "operands of other formats than DL16, FP32 and indices",
        Tag.LIKELY,
        _NEWEST,
        lambda view: bool(_formats(view) - {DL16.name, FP32.name, INDEX.name}),
    ),
    Feature(
        "order of elements after a change of width",
        Tag.LIKELY,
        "torch-spyre docs, element_arrangement.md",
        lambda view: len({operand.elements_per_stick for operand in view.operands if operand.indirect is None}) > 1,
    ),
    Feature("gather", Tag.LIKELY, "torch-spyre docs, indirect_access.md; no public file has it", _is_gather),
    Feature("pages of a gathered table", Tag.INFERRED, "named in the draft specification only", _limits_sizes),
    Feature(
        "windows over padded sizes",
        Tag.LIKELY,
        _NEWEST + "; sizes of padding are specified",
        lambda view: view.op_class in (OpClass.CONVOLUTION, OpClass.DEPTHWISE),
    ),
    Feature(
        "pooling",
        Tag.INFERRED,
        "newest torch-spyre code generation writes back gaps for it that contradict its window sizes",
        lambda view: view.op_class is OpClass.POOLING,
    ),
    Feature(
        "padding that is in no memory",
        Tag.INFERRED,
        "the draft specification names it; how start addresses count it is not public",
        lambda view: any(window.front or window.back for window in view.windows),
    ),
    Feature("top-k", Tag.LIKELY, _NEWEST, lambda view: view.op_class is OpClass.TOP_K),
    Feature(
        "operand with a distribution of its own",
        Tag.LIKELY,
        "interface specification of the shuffle, and newest torch-spyre code generation; no public file has it",
        lambda view: any(operand.slices for operand in view.operands),
    ),
    Feature("symbolic sizes", Tag.LIKELY, _NEWEST, lambda view: any(dim.symbolic is not None for dim in view.dims)),
    Feature(
        "two dims in a stick", Tag.LIKELY, _NEWEST, lambda view: any(o.second_stick is not None for o in view.operands)
    ),
    Feature(
        "restickify of 32-bit elements",
        Tag.LIKELY,
        _CODE + "; torch-spyre #2560 says that the back end refuses it",
        _moves_wide_elements,
    ),
    Feature("back gap of a restickify", Tag.LIKELY, _CODE + "; a shortfall is written alike", _moves_in_hbm),
)
