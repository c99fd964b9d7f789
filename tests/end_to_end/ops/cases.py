"""Samples of the op table as arguments, and what torch computes for them in float64."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

import spyre_mlir.frontend.spyre_ops  # noqa: F401 # defines operators
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.parameters import ArgKind
from spyre_mlir.ops.table import OpEntry, Sample

Array = NDArray[Any]
Arguments = dict[str, Any]

# A number where an overload takes one in a tensor's place.
SCALAR = 0.75
WHOLE_SCALAR = 3
# Arguments whose overloads share an entry under another name.
ALIASES = {"mat2": "other", "shape": "size"}
# torch takes the epsilon of the type it computes in: float32 for the models we compile, float64 here.
FLOAT32_EPSILON = 2.0**-23
DTYPES = {"f16": torch.float64}  # exact numbers: a conversion to a narrower float changes nothing
ONE_INT = ("int", "Optional[int]")
RANKS = {"mm": 2, "bmm": 3, "t": 2}
# Arguments that hold positions.
PLACES = ("index", "indices")
# Overloads with samples that need more than a sample says (offsets), or whose results are undefined.
ELSEWHERE = frozenset(
    {
        "_embedding_bag",
        "_embedding_bag_forward_only",
        "masked_scatter",
        "empty_like",
        "new_empty",
        "spyre::floor_divide_integers",  # no operator of torch's
        "spyre::add_words",
        "spyre::scale_and_shift",
        "spyre::convolve_padded",  # see unit/ops/composed/nn/test_convolution.py
        "spyre::group_norm_by_channels",  # see unit/ops/composed/nn/test_group_normalization.py
        "spyre::softmax_beside",  # see unit/ops/composed/nn/test_softmax.py
        "spyre::put_entry",  # see unit/ops/native/test_entries.py
        "spyre::put_page",
        "spyre::take_pages",  # see unit/ops/native/test_gathers.py
        "spyre::convolve_rows",  # see unit/ops/composed/nn/test_row_convolution.py
    }
)
# Overloads that take a first tensor of one rank only.
FIRST_RANKS = {
    "nll_loss": 2,
    "nll_loss_forward": 2,
    "nll_loss2d": 4,
    "nll_loss2d_forward": 4,
    "searchsorted.Scalar": 1,
}
# Arguments that hold truth values, whatever the overload.
TRUTH_NAMES = ("condition", "mask")


def holds_truth(overload: str, name: str) -> bool:
    """Whether torch wants booleans there: masks, and the operands of bitwise operations."""
    return name in TRUTH_NAMES or overload.startswith(("bitwise_", "logical_or", "logical_xor"))


def torch_op(overload: str) -> Any:
    namespace, _, rest = overload.rpartition("::")
    name, _, variant = rest.partition(".")
    return getattr(getattr(getattr(torch.ops, namespace or "aten"), name), variant or "default")


def schema(overload: str) -> list[Any]:
    return list(torch_op(overload)._schema.arguments)


def fits(overload: str, sample: Sample) -> bool:
    """Whether an overload takes what the sample gives."""
    rank = RANKS.get(overload)
    given = sample.attributes
    if overload in FIRST_RANKS and FIRST_RANKS[overload] != len(sample.shapes[0]):
        return False
    for argument in schema(overload):
        value, names = given.get(argument.name), {argument.name, ALIASES.get(argument.name)}
        if isinstance(value, tuple) and str(argument.type) in ONE_INT and len(value) != 1:
            return False
        number = str(argument.type) in ("int", "float", "bool", "List[int]", "List[float]")
        if (number or argument.kwarg_only) and not argument.has_default_value() and not names & set(given):
            return False
    needed = sum(str(a.type) == "Tensor" and not a.has_default_value() for a in schema(overload))
    possible = sum("Tensor" in str(a.type) or str(a.type) == "number" for a in schema(overload))
    if not needed <= len(sample.shapes) <= possible:
        return False
    known = {n for a in schema(overload) for n in (a.name, ALIASES.get(a.name))}
    return (
        set(given) <= known
        and (rank is None or all(len(s) == rank for s in sample.shapes))
        and _spatial_dimensions(overload) in (None, _spatial_dimensions_of(overload, sample))
    )


def _spatial_dimensions(overload: str) -> int | None:
    """The 2 of `conv2d` or `max_pool2d`; samples of losses say it by their shapes alone."""
    if overload in FIRST_RANKS:
        return None
    found = re.search(r"[a-z_](\d)d", overload)
    return int(found.group(1)) if found else None


def _spatial_dimensions_of(overload: str, sample: Sample) -> int | None:
    """How many spatial dimensions a sample is for, if it says."""
    if overload.startswith("grid_sampler"):
        return len(sample.shapes[0]) - 2
    if overload.rpartition("::")[2].startswith("conv"):
        return len(sample.shapes[1]) - 2
    sizes = next(
        (sample.attributes[n] for n in ("kernel_size", "output_size", "scale_factors") if n in sample.attributes), None
    )
    if "padding" in sample.attributes and sizes is None:
        sizes = cast("tuple[int, ...]", sample.attributes["padding"])[::2]
    return len(sizes) if isinstance(sizes, tuple) else None


def good_cases() -> list[tuple[OpEntry, str, Sample]]:
    wanted = [(e, o) for e in ATEN for o in e.overloads if o not in ELSEWHERE]
    return [(e, o, s) for e, o in wanted for s in e.samples if s.breaks is None and fits(o, s)]


def case_id(value: object) -> str:
    match value:
        case OpEntry():
            return value.name
        case Sample():
            attributes = ",".join(f"{k}={v}" for k, v in value.attributes.items())
            return f"{value.shapes}{attributes}".replace(" ", "")
        case _:
            return str(value)


def arguments(entry: OpEntry, overload: str, sample: Sample, seed: int = 7) -> Arguments:
    """Every argument of the schema by name: arrays, lists of them, numbers."""
    rng = np.random.default_rng(seed)
    types = {a.name: str(a.type) for a in schema(overload)}
    out: Arguments = {p.name: p.default for p in entry.params} | dict(sample.attributes)
    if overload == "rms_norm" and out["eps"] is None:
        out["eps"] = FLOAT32_EPSILON
    tensors = [p for p in entry.params if p.is_tensor]
    for param, shape in zip(tensors, sample.shapes, strict=False):
        if shape is None:
            out[param.name] = None
        elif param.name in PLACES:
            out[param.name] = places(overload, param.kind, sample, shape, rng)
        elif param.kind is ArgKind.TENSORS:
            out[param.name] = [rng.uniform(sample.low, sample.high, s) for s in shape]
        elif types.get(param.name) == "number":
            out[param.name] = WHOLE_SCALAR if sample.whole else SCALAR
        else:
            out[param.name] = _drawn(rng, overload, param.name, sample, shape)
    return out


def places(overload: str, kind: ArgKind, sample: Sample, shape: Any, rng: np.random.Generator) -> Any:
    """Indices into the first tensor of a sample, often the same one twice."""
    first = sample.shapes[0]
    if kind is ArgKind.TENSORS:
        return [rng.integers(0, extent, s) for extent, s in zip(first, shape, strict=False)]
    if "dim" in sample.attributes:
        extent = first[int(sample.attributes["dim"])] if first else 1
        # Which of two writes to one place wins is not defined here.
        return rng.permutation(extent)[: shape[0]] if overload == "index_copy" else rng.integers(0, extent, shape)
    if overload in ("take", "put", "take_along_dim"):
        return rng.integers(0, prod(first), shape)
    if overload == "spyre::keep_by_index":
        return rng.integers(0, first[-1], shape)
    return rng.integers(int(sample.low), int(sample.high), shape)


def _drawn(rng: np.random.Generator, overload: str, name: str, sample: Sample, shape: tuple[int, ...]) -> Array:
    """Random values of one tensor argument: positions, truth values, sorted lists, or numbers."""
    if overload == "one_hot":
        return rng.integers(0, int(sample.attributes["num_classes"]), shape)
    if name == "target" and overload.startswith("multilabel_margin_loss"):
        return rng.integers(-1, shape[-1], shape)
    if name == "target" and shape != sample.shapes[0]:
        return rng.integers(0, sample.shapes[0][min(1, len(sample.shapes[0]) - 1)], shape)
    if name in ("sorted_sequence", "boundaries"):
        return np.sort(rng.uniform(sample.low, sample.high, shape))
    if sample.whole:
        return rng.integers(int(sample.low), int(sample.high), shape)
    if holds_truth(overload, name):
        return rng.random(shape) < 0.5
    return rng.uniform(sample.low, sample.high, shape)


def expected(overload: str, given: Mapping[str, Any]) -> list[Array]:
    """What torch gives in float64, one array per result."""
    positional, keywords = [], {}
    for argument in schema(overload):
        name = argument.name if argument.name in given else ALIASES.get(argument.name)
        value = _to_torch(given.get(name), str(argument.type))
        if argument.kwarg_only:
            keywords[argument.name] = value
        else:
            positional.append(value)
    keywords = {k: v for k, v in keywords.items() if v is not None}
    if overload == "arange.start_step":
        keywords["dtype"] = torch.float64
    out = torch_op(overload)(*positional, **keywords)
    return [t.numpy() for t in ([out] if isinstance(out, torch.Tensor) else out)]


def _to_torch(value: Any, type_: str) -> Any:
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, list):
        return [_to_torch(v, type_) for v in value]
    if isinstance(value, str) and value in DTYPES:
        return DTYPES[value]
    if isinstance(value, tuple) and type_ in ONE_INT:
        return value[0]
    return value
