"""Host steps of runs that are compared: each run draws from a copy of torch's generator of its own.

Decision: docs/decisions/0136-random-numbers-are-eagers.md
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from spyre_mlir.dialects.host_call import HostCall
from spyre_mlir.frontend.reference.generator import generator_kept
from spyre_mlir.frontend.reference.op_runner import Array, run_host_step
from spyre_mlir.ops.draws import draws


class OwnDraws:
    """An executor of host steps for one run, which draws from a copy of torch's generator.

    Runs made one after the other, or side by side, draw the same numbers.
    """

    def __init__(self) -> None:
        """Takes the generator's state."""
        self._state = torch.get_rng_state()

    def __call__(self, call: HostCall, operands: Sequence[Array], *, wide: bool) -> list[Array]:
        """Run a host step; see `machine.levels.host_ops.HostExecutor`."""
        if not draws(call.overload):
            return run_host_step(call, operands, wide=wide)
        with generator_kept():
            torch.set_rng_state(self._state)
            results = run_host_step(call, operands, wide=wide)
            self._state = torch.get_rng_state()
        return results
