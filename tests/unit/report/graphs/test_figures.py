"""Figures of ops, files and modules."""

from __future__ import annotations

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.report.graphs import LevelGraphs
from spyre_mlir.report.graphs.figures import module_figures


def test_figures_of_a_level_are_those_of_its_text(graphs: LevelGraphs) -> None:
    at = {
        level: {n.id: n.figures for n in graphs.at(level).nodes} for level in ("spyre.loop", "spyre.kernel", "superdsc")
    }
    nest = at["spyre.loop"]["layers/0/up/aten.linear.nest0"]
    assert (nest["loops"], nest["points"], nest["per point"], nest["reduction"]) == (
        "m = 64, n = 128, k = 64",
        str(64 * 128 * 64),
        "mulf",
        "addf",
    )
    relu = at["spyre.kernel"]["layers/0/aten.relu"]
    assert relu["loops"] == "d0 = 64 over 32 cores, d1 = 128" and relu["cores"] == "32"
    assert at["superdsc"]["layers/0/aten.relu"]["unit"] == "sfp"


def test_modules_sum_what_is_in_them_and_below(net: CompiledModel) -> None:
    kernels = net.timeline().kernels
    groups = [("a", "b"), ("a",), ()]
    found = module_figures((groups[n % 3], k) for n, k in enumerate(kernels))
    assert set(found) == {(), ("a",), ("a", "b")}
    deep, whole = len(kernels[::3]), len(kernels)
    assert [found[g]["kernels"] for g in (("a", "b"), ("a",), ())] == [
        str(deep),
        str(deep + len(kernels[1::3])),
        str(whole),
    ]
