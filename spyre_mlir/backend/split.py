"""The parts of a module at the superdsc level, as a bundle directory has them."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from spyre_mlir.dialects.sdscbundle import SdscExecuteOp
from spyre_mlir.dialects.superdsc.ops import SdscOp
from spyre_mlir.errors import EmitError

BUNDLE_FUNCTION = "sdsc_bundle"


def split_module(module: ModuleOp) -> tuple[ModuleOp, ModuleOp, dict[str, SdscOp]]:
    """The host program, the bundle function, and the SuperDSCs of a module, by file name.

    Raises:
        EmitError: the module is not at the superdsc level.
    """
    sdscs = {op.file_name: op for op in module.ops if isinstance(op, SdscOp)}
    launched = [launch.sdsc_filename.data for launch in launches(module)]
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}
    if not sdscs and not launched and BUNDLE_FUNCTION not in functions:
        functions[BUNDLE_FUNCTION] = _nothing()
    if BUNDLE_FUNCTION not in functions or set(launched) != set(sdscs):
        lost = sorted(set(launched) ^ set(sdscs))
        raise EmitError(
            f"a bundle needs a function @{BUNDLE_FUNCTION} that launches every SuperDSC and nothing else; this module "
            f"has {len(sdscs)} SuperDSCs and {len(launched)} launches"
            + (f", and {lost[0]} is only one of the two" if lost else ""),
            hint="lower it to the superdsc level",
        )
    host = [f.clone() for name, f in functions.items() if name != BUNDLE_FUNCTION]
    program = ModuleOp(Region(Block(host)), attributes=dict(module.attributes), sym_name=module.sym_name)
    return program, ModuleOp([functions[BUNDLE_FUNCTION].clone()]), sdscs


def _nothing() -> func.FuncOp:
    """The bundle of a program that the device has no part in: its results are inputs, or known beforehand."""
    return func.FuncOp(BUNDLE_FUNCTION, ((), ()), Region(Block([func.ReturnOp()])))


def launches(module: ModuleOp) -> list[SdscExecuteOp]:
    """The launches of a bundle in the order of the text, those in a loop once."""
    return [op for op in module.walk() if isinstance(op, SdscExecuteOp)]
