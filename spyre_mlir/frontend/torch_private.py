"""Every use of an interface that torch does not promise to keep: one place to look when torch moves.

Used: `torch._subclasses` (which tensors are fake), `torch._dynamo.exc` and `symbolic_shapes` (what
export raises), `torch.utils._pytree` (argument and output trees), `torch._ops` (classes of operators),
`UntypedStorage._cdata` (identity of memory, also for tensors without any).
"""

from __future__ import annotations

import torch
from torch._dynamo.exc import TorchDynamoException
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode, is_fake
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils._pytree import TreeSpec, tree_flatten, tree_flatten_with_path, tree_map, treespec_dumps, treespec_loads

__all__ = [
    "FakeTensorMode",
    "GuardOnDataDependentSymNode",
    "HigherOrderOperator",
    "OpOverload",
    "TorchDynamoException",
    "TreeSpec",
    "is_fake",
    "storage_identity",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_map",
    "treespec_dumps",
    "treespec_loads",
]


def storage_identity(value: torch.Tensor) -> int:
    """What tensors on the same storage share."""
    return value.untyped_storage()._cdata  # noqa: SLF001
