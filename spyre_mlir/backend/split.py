"""The parts of a module at the superdsc level, as stored in a bundle directory."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Block, Region

from spyre_mlir.dialects.ir.control import ControlOp
from spyre_mlir.dialects.ir.functions import functions, functions_by_name
from spyre_mlir.dialects.sdscbundle import BUNDLE_FUNCTION, SdscExecuteOp
from spyre_mlir.dialects.spyre.host import KernelHostOp
from spyre_mlir.dialects.spyre.kernel import AllocOp, FromDeviceOp, KernelConstantOp, ToDeviceOp
from spyre_mlir.dialects.spyre.kernel_loop import BlockNumberOp, TileOp
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.dialects.target import module_like
from spyre_mlir.errors import EmitError

_BUFFERS = (ToDeviceOp, FromDeviceOp, KernelConstantOp, AllocOp, BlockNumberOp, TileOp)
_HOST = (func.FuncOp, func.ReturnOp, KernelHostOp, ControlOp, *_BUFFERS)


def split_module(module: ModuleOp) -> tuple[ModuleOp, ModuleOp, dict[str, SdscOp]]:
    """Return the host program, the bundle functions, and the SuperDSCs of a module, by file name.

    A program that leaves nothing to the device has no bundle function.

    Raises:
        EmitError: the module is not at the superdsc level.
    """
    sdscs = {op.file_name: op for op in module.ops if isinstance(op, SdscOp)}
    launched = [launch.sdsc_filename.data for launch in launches(module)]
    named = functions_by_name(module)
    if not sdscs and not launched and "main" in named and _is_host_alone(named["main"]):
        named.setdefault(BUNDLE_FUNCTION, _nothing())
    bundles = [f for name, f in named.items() if name.startswith(BUNDLE_FUNCTION)]
    if not bundles or set(launched) != set(sdscs):
        lost = sorted(set(launched) ^ set(sdscs))
        raise EmitError(
            f"a bundle needs a function @{BUNDLE_FUNCTION} that launches every SuperDSC and nothing else; this module "
            f"has {len(sdscs)} SuperDSCs and {len(launched)} launches"
            + (f", and {lost[0]} is only one of the two" if lost else ""),
            hint="lower it to the superdsc level",
        )
    host = [f.clone() for f in named.values() if f not in bundles]
    program = ModuleOp(Region(Block(host)), attributes=dict(module.attributes), sym_name=module.sym_name)
    return program, module_like(module, [f.clone() for f in bundles]), sdscs


def _is_host_alone(main: func.FuncOp) -> bool:
    """Return whether a host function at the superdsc level leaves nothing to the device."""
    return all(isinstance(op, _HOST) for op in main.walk())


def _nothing() -> func.FuncOp:
    """The bundle of a program that the device has no part in: its results are inputs, or known beforehand."""
    return func.FuncOp(BUNDLE_FUNCTION, ((), ()), Region(Block([func.ReturnOp()])))


def launches(module: ModuleOp) -> list[SdscExecuteOp]:
    """Return the launches of a bundle in text order, those in a loop once."""
    # SuperDSCs beside the functions hold none.
    return [op for function in functions(module) for op in function.walk() if isinstance(op, SdscExecuteOp)]


def folder_of(function: str) -> str:
    """Return the folder of a bundle function if a program has several: ``launch_1`` for ``@sdsc_bundle_1``."""
    return f"launch{function.removeprefix(BUNDLE_FUNCTION)}"


def in_folder(folder: str, name: str) -> str:
    """Return the path of a file of a bundle function in the directory."""
    return f"{folder}/{name}" if folder else name


def bundle_functions(module: ModuleOp) -> list[func.FuncOp]:
    """Return the bundle functions of a module, in order."""
    found = (op for op in module.ops if isinstance(op, func.FuncOp))
    return [f for f in found if f.sym_name.data.startswith(BUNDLE_FUNCTION)]


def public_parts(bundle: ModuleOp) -> dict[str, ModuleOp]:
    """Return the modules to write as ``bundle.mlir``, by folder in the directory: one at its top, or one per launch.

    The function in a file is always called `sdsc_bundle`, as readers of these files expect.
    """
    found = bundle_functions(bundle)
    parts = {"" if len(found) == 1 else folder_of(f.sym_name.data): f.clone() for f in found}
    for function in parts.values():
        function.sym_name = StringAttr(BUNDLE_FUNCTION)
    return {folder: module_like(bundle, [function]) for folder, function in parts.items()}
