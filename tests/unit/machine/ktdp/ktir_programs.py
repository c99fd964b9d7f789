"""KTIR programs for tests: the six files, and small ones put together from pieces of text."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from spyre_mlir.machine.ktdp import run_ktir
from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.universe import make_context
from tests.paths import DATA

FILES = DATA / "ktir"
Array = NDArray[Any]


def read(text: str) -> ModuleOp:
    module = parse_module(text, make_context(), "test.mlir")
    verify_module(module)
    return module


def attribute(text: str) -> Any:
    """An attribute by its text, as a set or a map."""
    return Parser(make_context(), text).parse_attribute()


def program(name: str) -> ModuleOp:
    return read((FILES / f"{name}.mlir").read_text())


def halves(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def box(*extents: int) -> str:
    dims = ", ".join(f"d{n}" for n in range(len(extents)))
    rules = ", ".join(f"d{n} >= 0, -d{n} + {extent - 1} >= 0" for n, extent in enumerate(extents))
    return f"affine_set<({dims}) : ({rules})>"


def view(
    name: str, base: str, shape: tuple[int, ...], element: str = "f16", space: str = "global", **other: Any
) -> str:
    """A dense view, as text."""
    strides = other.get("strides", [int(np.prod(shape[n + 1 :])) for n in range(len(shape))])
    dims = "x".join(map(str, shape))
    return (
        f"%{name} = ktdp.construct_memory_view %{base}, sizes: {list(shape)}, strides: {list(strides)} "
        f"{{coordinate_set = {other.get('domain', box(*shape))}, memory_space = #ktdp.memory_space<{space}>}} "
        f": memref<{dims}x{element}>\n"
    )


def tile(
    name: str,
    of: str,
    start: list[str],
    extents: tuple[int, ...],
    shape: tuple[int, ...],
    element: str = "f16",
    **other: Any,
) -> str:
    """A tile of a view, as text."""
    order = other.get("order", list(range(len(extents))))
    dims = ", ".join(f"d{n}" for n in range(len(extents)))
    walked = "x".join(str(extents[n]) for n in order)
    return (
        f"%{name} = ktdp.construct_access_tile %{of}[{', '.join('%' + one for one in start)}] "
        f"{{access_tile_set = {other.get('points', box(*extents))}, "
        f"access_tile_order = affine_map<({dims}) -> ({', '.join(f'd{n}' for n in order)})>}} "
        f": memref<{'x'.join(map(str, shape))}x{element}> -> !ktdp.access_tile<{walked}xindex>\n"
    )


def load(name: str, of: str, extents: tuple[int, ...], element: str = "f16") -> str:
    dims = "x".join(map(str, extents))
    return f"%{name} = ktdp.load %{of} : !ktdp.access_tile<{dims}xindex> -> tensor<{dims}x{element}>\n"


def store(value: str, into: str, extents: tuple[int, ...], element: str = "f16") -> str:
    dims = "x".join(map(str, extents))
    return f"ktdp.store %{value}, %{into} : tensor<{dims}x{element}>, !ktdp.access_tile<{dims}xindex>\n"


def function(arguments: str, *body: str, grid: str = "[1]") -> ModuleOp:
    constants = "".join(f"%c{n} = arith.constant {n} : index\n" for n in (0, 1, 2, 4, 8, 16, 32, 64))
    core = "%core = ktdp.get_compute_tile_id : index\n" if "," not in grid else ""
    return read(
        f"func.func @f({arguments}) attributes {{grid = {grid}}} {{\n{constants}{core}{''.join(body)}return\n}}"
    )


def copy(source: str, into: str, extents: tuple[int, ...], element: str = "f16") -> str:
    """Load one tile and store it through another."""
    return load("data", source, extents, element) + store("data", into, extents, element)


def run(module: ModuleOp, *, blank: tuple[str, ...] = (), **arrays: Any) -> dict[str, Array]:
    return run_ktir(module, None, arrays, blank=blank)
