"""Hand-written modules for the tests of the upper levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.universe import make_context

Array = NDArray[Any]


def parse(text: str) -> ModuleOp:
    module = parse_module(text, make_context())
    verify_module(module)
    return module


def main(arguments: str, body: str, result: str) -> str:
    """A function @main; `body` defines %out of type `result`."""
    return f"func.func @main({arguments}) -> {result} {{\n{body}\nfunc.return %out : {result}\n}}"


def run(text: str, *inputs: Array) -> Array:
    (out,) = run_function(parse(text), inputs)
    return out


def numbers(*shape: int, seed: int = 0) -> Array:
    """Random numbers that a float32 argument can hold, in the double precision of the reference."""
    return float32(np.random.default_rng(seed).uniform(-2, 2, shape))


def float32(exact: Array) -> Array:
    """Numbers rounded to float32 once, as eager leaves them, in the double precision that the machine returns."""
    return np.asarray(exact, np.float32).astype(np.float64)


def close(got: Array, wanted: Array, tolerance: float = 0.0) -> None:
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=max(1e-12, tolerance), atol=max(1e-12, tolerance))


def device(
    shape: Sequence[int],
    stick: int | None,
    order: Sequence[int] | None = None,
    form: str = "SEN169_FP16",
    extents: Sequence[int] | None = None,
) -> str:
    """Text of a device tensor type; without a stick dimension it is sparse."""
    dims = range(len(shape))
    listed = [str(d) for d in (order or [*(d for d in dims if d != stick), *([] if stick is None else [stick])])]
    listed += ["unit"] if stick is None else []
    reserved = "" if extents is None else f", extents {list(extents)}"
    return (
        f"!spyre.tensor<{list(shape)} x {form}, order [{', '.join(listed)}], "
        f"stick {'unit' if stick is None else stick}{reserved}, hbm>"
    )


def host(shape: Sequence[int], element: str = "f16") -> str:
    return f"tensor<{'x'.join(map(str, [*shape, element]))}>"


def send(name: str, shape: Sequence[int], type_: str, *, zeros: bool = False, element: str = "f16") -> str:
    padding = " zero_padding" if zeros else ""
    return f"%d{name} = spyre.kernel.to_device %{name}{padding} : {host(shape, element)} to {type_}\n"


def program(
    arguments: dict[str, Sequence[int]],
    body: str,
    out_type: str,
    shape: Sequence[int],
    elements: dict[str, str] | None = None,
) -> str:
    """Sends nothing by itself; allocates %o, runs the body, and reads %o back."""
    listed = ", ".join(f"%{n}: {host(s, (elements or {}).get(n, 'f16'))}" for n, s in arguments.items())
    return main(
        listed,
        f"""%o = spyre.kernel.alloc : {out_type}
        {body}
        %out = spyre.kernel.from_device %o : {out_type} to {host(shape)}""",
        host(shape),
    )
