"""Operations with a rule of their own for running on all cores."""

from __future__ import annotations

from spyre_mlir.dialects.superdsc.model.descriptor import WINDOWED, Descriptor, OpClass
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.memory.exact import Memory, element_bytes
from spyre_mlir.machine.superdsc.core_rules import layer_norm, topk
from spyre_mlir.machine.superdsc.core_rules.per_core import CoreRule, Symbols, run_by_core
from spyre_mlir.machine.superdsc.core_rules.shuffle import run_shuffle
from spyre_mlir.machine.superdsc.core_rules.windows import run_windows
from spyre_mlir.machine.superdsc.stale_reads import History
from spyre_mlir.ops.hardware_functions import FUNCTIONS, Seen, Special

RULES: dict[Special, CoreRule] = {
    Special.MOMENTS: layer_norm.exx2,
    Special.INVERSE_DEVIATION: layer_norm.layernormscale,
    Special.TOKEN_SCALE: layer_norm.quantscale,
    Special.LARGEST: topk.topkvalue,
    Special.PLACES_OF_LARGEST: topk.topkindex,
}


def run_special(view: Descriptor, memory: Memory, symbols: Symbols | None, past: History) -> bool:
    """Run an operation that has a rule of its own; return False, with nothing done, for all others.

    Raises:
        MachineFault: the program misbehaved.
        UnsupportedError: memory does not hold a format, or no public source settles what the function does.
    """
    for operand in view.operands:
        element_bytes(operand.format)
    known = FUNCTIONS.get(view.op_func)
    if known is not None and known.seen is Seen.UNSETTLED:
        where = f"{view.index}:{view.op_func_name}"
        raise UnsupportedError(f"what {view.op_func} computes is not public: {known.meaning}", where=where)
    rule = None if known is None or known.special is None else RULES.get(known.special)
    if rule is not None:
        run_by_core(view, memory, symbols, rule, past)
    elif view.op_class in WINDOWED:
        run_windows(view, memory, symbols, past)
    elif view.op_class is OpClass.SHUFFLE or any(operand.slices for operand in view.operands):
        run_shuffle(view, memory, symbols, past)
    else:
        return False
    return True
