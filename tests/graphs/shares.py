"""What random programs look like: values with several readers whose results meet again, and sizes beside sticks."""

from __future__ import annotations

from collections.abc import Sequence

from tests.graphs.operators import Tensor
from tests.graphs.programs import Program

LANES = 64


def has_branch_and_join(program: Program, inputs: int) -> bool:
    """Return whether two ways from one value, an input included, meet in a later step."""
    before = [{n} for n in range(inputs)]  # of each value, what it is made of
    for step in program.steps:
        made_of = [before[n] for n in dict.fromkeys(step.reads)]
        if any(one & other for k, one in enumerate(made_of) for other in made_of[:k]):
            return True
        before.append({len(before)}.union(*made_of))
    return False


def is_unaligned(program: Program, inputs: Sequence[Tensor]) -> bool:
    """Return whether the last dimension of some value that a step reads or makes is no whole number of sticks."""
    return any(x.dim() > 0 and x.shape[-1] % LANES for x in program.values(inputs))
