"""Scripts for IBM's `torch_sendnn`, run as they are: `python -m spyre_mlir.torch_compile.sendnn SCRIPT ARGUMENTS…`.

Such scripts import `torch_sendnn`, which comes with the card's software, and compile with ``backend="sendnn"``. The
runner supplies both for one process, on the hardware model. Nothing else in the package defines either name.
"""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

from torch.fx import GraphModule

from spyre_mlir.choices import Numerics
from spyre_mlir.errors import InputError
from spyre_mlir.torch_compile.backend import spyre
from spyre_mlir.torch_compile.dynamo_private import back_ends, register_back_end
from spyre_mlir.torch_compile.history import print_history

MODULE, BACK_END, DYNAMIC = "torch_sendnn", "sendnn", "sendnn.dynamic"
_HINT = "run the script without the runner: python SCRIPT ARGUMENTS…"


@contextmanager
def warmup_mode() -> Generator[None]:
    """The calls inside compile; a card loads programs when it ends, and the hardware model has nothing to load."""
    yield


class StandIn(ModuleType):
    """`torch_sendnn`, or the module of the same name inside it, as far as IBM's public scripts need it."""

    def __init__(self, name: str) -> None:
        super().__init__(name, __doc__)
        self.__spec__ = ModuleSpec(name, None, origin=__file__)
        self.warmup_mode = warmup_mode

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the stand-in for {MODULE} has warmup_mode alone, got {name}")


def supply(numerics: Numerics = "device") -> None:
    """Make `torch_sendnn` importable and ``sendnn`` a back end of `torch.compile`, for this process.

    Args:
        numerics: how calls compute.

    Raises:
        InputError: the real one is installed, or another package has the back end.
    """
    if MODULE in sys.modules:
        raise InputError(f"{MODULE} is imported already, and is not replaced", where=repr(sys.modules[MODULE]))
    if (real := find_spec(MODULE)) is not None:
        raise InputError(f"{MODULE} itself is installed, and is not replaced", where=real.origin, hint=_HINT)
    if BACK_END in back_ends():
        raise InputError(f"torch.compile has a back end {BACK_END}, and it is not replaced", hint=_HINT)
    package, inner = StandIn(MODULE), StandIn(f"{MODULE}.{MODULE}")
    setattr(package, MODULE, inner)
    sys.modules |= {module.__name__: module for module in (package, inner)}
    register_back_end(BACK_END, back_end(numerics))


def back_end(numerics: Numerics) -> Callable[..., Callable[..., Any]]:
    """Return the back end ``sendnn``: ``spyre`` with `torch_sendnn`'s options.

    Args:
        numerics: how calls compute.
    """

    def sendnn(
        graph: GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None
    ) -> Callable[..., Any]:
        """Compile a captured graph; sizes that Dynamo left open stay open, whatever ``sendnn.dynamic`` says."""
        if unknown := set(options or {}) - {DYNAMIC}:
            raise InputError(f'torch.compile(backend="{BACK_END}") has {DYNAMIC}, got {", ".join(sorted(unknown))}')
        return spyre(graph, example_inputs, options={"numerics": numerics})

    return sendnn


def main(argv: Sequence[str]) -> int:
    """Run a script with the stand-in; its errors and its exit code are its own.

    Args:
        argv: options, the script, and its arguments.
    """
    parser = argparse.ArgumentParser(prog=f"python -m {__spec__.name}", description=__doc__)
    parser.add_argument("--numerics", choices=get_args(Numerics), default="device", help="how calls compute")
    parser.add_argument("--explain", action="store_true", help="list what was compiled on stderr in the end")
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is a module, as in python -m")
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", metavar="ARGUMENTS", nargs=argparse.REMAINDER)
    options = parser.parse_args(argv)
    try:
        supply(options.numerics)
        run = _finder(options.script, module=options.module)
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    sys.argv = [options.script, *options.arguments]
    try:
        run()
    finally:
        if options.explain:
            print_history()
    return 0


def _finder(script: str, *, module: bool) -> Callable[[], object]:
    """What runs a script or module as Python would."""
    if module:
        sys.path[0] = str(Path.cwd())
        return lambda: runpy.run_module(script, run_name="__main__", alter_sys=True)
    if not Path(script).is_file():
        raise InputError(f"no such script: {script}", hint="-m MODULE for a module")
    sys.path[0] = str(Path(script).resolve().parent)
    return lambda: runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
