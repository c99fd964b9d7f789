"""Messages of `spyre-run` about numbers beyond DLFloat16."""

from __future__ import annotations

import sys

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.choices import OnOverflow
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.machine.overflows import Overflow, tell_overflows
from spyre_mlir.transforms.loop_to_kernel.precision_loss import would_be_kept


def say_overflows(policy: OnOverflow, met: FaultLog, main: ModuleOp | None = None) -> None:
    """Report on stderr the values beyond DLFloat16, or refuse the results.

    Args:
        policy: what to do.
        met: what the run met.
        main: the host program, whose types say what the model has as float32; None if there is none.

    Raises:
        OverflowFault: numbers went beyond, and the policy is to raise.
    """

    def curable(overflow: Overflow) -> bool:
        return main is not None and would_be_kept(main, overflow.function, None)

    tell_overflows(met.overflows, policy, curable=curable, tell=lambda text: sys.stderr.write(f"warning: {text}\n"))
