"""Arguments that declarations ignore, each with the reason; see `Table.declare` for what may be ignored."""

from __future__ import annotations

from spyre_mlir.ops.parameters import ArgKind, Ignored, Param

_GRADIENT = "gradients alone depend on it"
_ALGORITHM = "chooses among algorithms of torch that give the same result"
_TYPE = "the type of the result says it"


def _optional(name: str, kind: ArgKind, default: object, why: str) -> Ignored:
    return Ignored(Param(name, kind, required=False, default=default), why)


def _required(name: str, kind: ArgKind, why: str) -> Ignored:
    return Ignored(Param(name, kind, required=True), why)


DTYPE = _optional("dtype", ArgKind.DTYPE, None, _TYPE)
HALF_TO_FLOAT = _optional("half_to_float", ArgKind.BOOL, False, _TYPE)

MEMORY_FORMAT = _optional("memory_format", ArgKind.STRING, None, "results get the strides that torch records for them")
NON_BLOCKING = _optional("non_blocking", ArgKind.BOOL, False, "a call ends when its results exist")

PADDING_IDX = _optional("padding_idx", ArgKind.INT, -1, _GRADIENT)
SCALE_GRAD_BY_FREQ = _optional("scale_grad_by_freq", ArgKind.BOOL, False, _GRADIENT)
SPARSE = _optional("sparse", ArgKind.BOOL, False, _GRADIENT)
SPARSE_GRAD = _optional("sparse_grad", ArgKind.BOOL, False, _GRADIENT)

COMPUTE_MODE = _optional("compute_mode", ArgKind.INT, None, _ALGORITHM)
CUDNN_ENABLE = _optional("cudnn_enable", ArgKind.BOOL, True, _ALGORITHM)
CUDNN_ENABLED = _optional("cudnn_enabled", ArgKind.BOOL, True, _ALGORITHM)
CUDNN_ENABLED_OR_NOT = _required("cudnn_enabled", ArgKind.BOOL, _ALGORITHM)
UNROLL_DIM = _optional("unroll_dim", ArgKind.INT, 1, _ALGORITHM)
USE_FAST_ACCUM = _optional("use_fast_accum", ArgKind.BOOL, False, _ALGORITHM)

_STABLE = "every order keeps equal elements as they were"
STABLE = _optional("stable", ArgKind.BOOL, False, _STABLE)
STABLE_OR_UNSAID = _optional("stable", ArgKind.BOOL, None, _STABLE)
SORTED = _optional("sorted", ArgKind.BOOL, True, "the elements are always sorted")

MOMENTUM = _required("momentum", ArgKind.NUMBER, "another op updates the running statistics")
_UNPOOLED = "the indices and the size of the output determine the result"
UNPOOLED_STRIDE = _optional("stride", ArgKind.INTS, (), _UNPOOLED)
UNPOOLED_PADDING = _optional("padding", ArgKind.INTS, (), _UNPOOLED)
IMPLICIT = _optional("implicit", ArgKind.BOOL, False, "torch sets it for calls that it adds, and expands them alike")
# Whoever calls the meaning of a collective knows the ranks.
GROUP_NAME = _required("group_name", ArgKind.STRING, "it names the ranks whose tensors are given")
GROUP_RANKS = _optional("ranks", ArgKind.INTS, (), "a run compares it with the group")
MARKED_DIM = _required("dim", ArgKind.INT, "dimensions keep their names without markers")
PADDING_SIZE = _required("padding_size", ArgKind.INT, "how rows are blocked changes no product")
