"""The operators that ranks of a group call together, one process and one card a rank.

A call gives every rank a result that depends on the tensors of all. So calls are neither merged, moved past each
other, dropped, nor computed ahead: a rank that leaves one out, or swaps two, waits for ever or gets another tensor.
The declarations stand in `ops.native.collectives`.

Decision: docs/decisions/0153-collectives-are-steps-of-the-host.md
"""

from __future__ import annotations

NAMESPACE = "_c10d_functional"
# The same operators with derivatives; without a backward pass they mean the same.
DIFFERENTIATED = "_c10d_functional_autograd"
NAMES = ("all_reduce", "all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single", "broadcast")
WAIT = "wait_tensor"
EXCHANGED = "ranks exchange tensors through the host"
RANKS = "ranks"  # argument of our own: global ranks of the group, in order
_COLLECTIVES = frozenset(f"{space}::{name}" for space in (NAMESPACE, DIFFERENTIATED) for name in NAMES)


def overloads(name: str) -> list[str]:
    """Return the overloads of a collective."""
    return [f"{NAMESPACE}::{name}", f"{DIFFERENTIATED}::{name}"]


def is_collective(overload: str) -> bool:
    """Return whether the ranks of a group call an operator together.

    Args:
        overload: ``.default`` dropped, with its namespace unless that is aten.
    """
    return overload in _COLLECTIVES
