"""Steps of programs at the spyre.loop level, counted by hand."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from spyre_mlir.frontend import import_program
from spyre_mlir.hw.cost import CostKind, Traffic, Work
from spyre_mlir.hw.cost_parameters import PROFILES
from spyre_mlir.options import PassOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.planning.bounds import Step, bounds
from spyre_mlir.planning.divided_kernels import DividedKernel, Prices
from spyre_mlir.planning.steps import steps_of
from spyre_mlir.universe import make_context
from tests.functions import FunctionModel
from tests.paths import ROOT

BENCHMARKS = ROOT / "benchmarks"


def steps(function: Callable[..., Tensor], *shapes: tuple[int, ...], options: PassOptions | None = None) -> list[Step]:
    with torch.device("meta"):
        arguments = tuple(torch.zeros(shape, dtype=torch.float16) for shape in shapes)
    module = import_program(FunctionModel(function), arguments).module
    return steps_of(lower(module, make_context(), options=options or {}).modules["spyre.loop"])


def test_a_softmax() -> None:
    found = steps(lambda x: functional.softmax(x, -1), (512, 1024))
    whole, column = 2 * 512 * 1024, 2 * 512
    assert [step.elements for step in found] == [512 * 1024] * 5
    # max, subtract, exp, sum, divide: the input is read by the first two.
    assert [sum(step.loads.values()) for step in found] == [whole, whole, 0, 0, 0]
    assert [step.stores for step in found] == [0, 0, 0, 0, whole]
    assert [step.local for step in found] == [column, column + whole, 2 * whole, whole + column, whole + column]
    assert [step.after for step in found] == [set(), {0}, {1}, {2}, {2, 3}]


def test_a_product_and_what_follows() -> None:
    first, second = steps(lambda x, w: functional.relu(functional.linear(x, w)), (64, 128), (256, 128))
    assert (first.macs, first.elements, first.stores) == (64 * 128 * 256, 0, 0)
    assert sorted(first.loads.values()) == [2 * 64 * 128, 2 * 256 * 128]
    assert (second.macs, second.elements, second.stores) == (0, 64 * 256, 2 * 64 * 256)


def test_steps_behind_a_copy_follow_what_is_copied() -> None:
    """The second reader, behind a copy, comes too late to load y."""
    found = steps(lambda x, y: torch.exp((x + y).transpose(0, 1).contiguous() * y), (128, 128), (128, 128))
    assert [step.after for step in found] == [set(), {0}, {1}]
    assert bounds(found).serial > bounds([replace(s, after=frozenset()) for s in found]).serial


def test_copies_are_no_steps_and_hide_nothing() -> None:
    found = steps(lambda x: torch.neg(x.transpose(0, 1).contiguous()).contiguous().reshape(-1), (64, 128))
    assert [(sum(s.loads.values()), s.stores) for s in found] == [(2 * 64 * 128, 2 * 64 * 128)]
    # What a concatenation is made of is a result too.
    parts = steps(lambda x, y: torch.cat([x.exp(), y.abs()]), (64, 128), (32, 128))
    assert sorted(s.stores for s in parts) == [2 * 32 * 128, 2 * 64 * 128]


def test_a_part_of_a_tensor_counts_as_that_part() -> None:
    (only,) = steps(lambda x: torch.exp(x[:, 64:128]), (32, 512))
    assert list(only.loads.values()) == [2 * 32 * 64]


@pytest.mark.parametrize(("second", "read"), [(64, 2 * 32 * 128), (32, 2 * 32 * 64)])
def test_parts_of_a_tensor_are_loaded_each_if_none_overlap(second: int, read: int) -> None:
    """Columns 0 to 63, and 64 to 127 or 32 to 95: of these it is known only that one function loads as much."""
    found = steps(lambda x: (torch.exp(x[:, :64]), torch.abs(x[:, second : second + 64])), (32, 512))
    assert bounds(found).bytes == read + 2 * 2 * 32 * 64


def test_called_regions_count_for_every_call() -> None:
    def layers(x: Tensor, *weights: Tensor) -> Tensor:
        for weight in weights:
            x = functional.silu(functional.layer_norm(functional.linear(x, weight), (64,))) + x
        return x

    shapes = ((32, 64), *[(64, 64)] * 4)
    flat, called = steps(layers, *shapes), steps(layers, *shapes, options={"outline-regions": {}})
    assert sum(s.macs for s in called) == 4 * 32 * 64 * 64
    assert [(s.macs, s.elements, s.stores, s.local) for s in called] == [
        (s.macs, s.elements, s.stores, s.local) for s in flat
    ]
    assert sorted(map(sum, (s.loads.values() for s in called))) == sorted(map(sum, (s.loads.values() for s in flat)))
    assert sum(s.stores for s in called) == 2 * 32 * 64


def workloads() -> list[dict[str, Any]]:
    """Those whose work does not depend on how it is composed.

    Causal attention computes more than half, a decode step makes a new cache of the old one, and groups of few
    channels are products with zeros.
    """
    found = tomllib.loads((BENCHMARKS / "workloads.toml").read_text(encoding="utf-8"))["workload"]
    grouped = [w for w in found if w.get("groups", 1) not in (1, w.get("image", [1])[0])]
    return [w for w in found if not w.get("causal") and w["kind"] != "layer" and w not in grouped]


@pytest.mark.parametrize("workload", workloads(), ids=lambda w: w["name"])
def test_rooflines_are_those_of_sizes_and_rates_alone(workload: dict[str, Any], scripts: None) -> None:
    from workload_bounds import roofline_us  # pyright: ignore[reportMissingImports]
    from workload_models import case  # pyright: ignore[reportMissingImports]

    built = case(workload)
    module = import_program(built.model, built.inputs).module
    # Patches of placed images are brought to their places by a product, which no size asks for.
    free = {"place-inputs": {"inputs": "free"}}
    found = steps_of(lower(module, make_context(), until="spyre.loop", options=free).modules["spyre.loop"])
    for name, parameters in PROFILES.items():
        # The scores of a router are beyond the formulas.
        assert bounds(found, parameters).roofline == pytest.approx(roofline_us(workload, name), rel=0.05)


# By hand: bytes of what is laid out again. Keys or queries are read and written; of an image all lanes are read.
RELAID = {
    "attention 4096 x 4096, causal, 32/32 heads": 2 * 32 * 4096 * 128 * 2,
    "attention 4096 x 4096, causal, 32/8 heads": 2 * 8 * 4096 * 128 * 2,
    "patch embedding 3 to 1152, 14 x 14, 392 x 392": 3 * 392 * (448 + 392) * 2,
    "patch embedding 3 to 768, 16 x 16, 384 x 384": 3 * 384 * (384 + 384) * 2,
    "convolution 256 to 256, 28 x 28": 256 * 28 * (64 + 28) * 2,
}


def test_own_bounds_add_what_no_function_reads_as_it_is_placed(scripts: None) -> None:
    from workload_bounds import own_bound_us, relaid_bytes, roofline_us  # pyright: ignore[reportMissingImports]

    found = {w["name"]: w for w in tomllib.loads((BENCHMARKS / "workloads.toml").read_text())["workload"]}
    assert {name: moved for name, w in found.items() if (moved := relaid_bytes(w))} == RELAID
    for profile, rate in (("calibrated", 150.0), ("peak", 204.8)):
        for name, workload in found.items():
            more = own_bound_us(workload, profile) - roofline_us(workload, profile)
            assert more == pytest.approx(RELAID.get(name, 0) / rate / 1000)


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The benchmarks' modules, which are no package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))


@pytest.mark.parametrize(("cores", "held", "dearer"), [(28, frozenset(), 20), (30, frozenset(), 1), (28, {0}, 1)])
@pytest.mark.usefixtures("scripts")
def test_large_kernels_on_few_cores_cost_more_where_cores_come_first(
    cores: int, held: frozenset[int], dearer: int
) -> None:
    import planning  # pyright: ignore[reportMissingImports]

    # Of its 1.2 MB it moves half if one operand is in the scratchpads.
    half = Traffic(bytes=600_000, needed=600_000, per_core=600_000 // cores)
    work = Work(kind=CostKind.POINTWISE, cores=cores, elements=300_000, operands=(half, replace(half, written=True)))
    one, local = DividedKernel({"d0": cores}, work, (0, 0), (1, 1)), frozenset(held)
    for priced in (Prices.us, Prices.floor_us):
        known, found = Prices(), planning.BusyPrices()
        assert getattr(found, priced.__name__)(one, local) == pytest.approx(dearer * priced(known, one, local))


def test_a_program_without_functions_has_no_steps() -> None:
    from xdsl.dialects.builtin import ModuleOp

    assert steps_of(ModuleOp([])) == []


@pytest.mark.parametrize("kept", [True, False])
def test_a_result_that_is_also_read_is_stored_once(kept: bool) -> None:
    def both(x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        y = x.exp()
        return (y, y.abs()) if kept else y.abs()

    found = steps(both, (64, 64))
    assert sum(s.stores for s in found) == (2 if kept else 1) * 2 * 64 * 64
