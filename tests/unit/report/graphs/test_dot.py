"""Graphviz draws every level, with the ids and links that were written."""

from __future__ import annotations

import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from spyre_mlir.pipeline import LEVELS
from spyre_mlir.report.graphs import LevelGraph, LevelGraphs, LevelNode
from spyre_mlir.report.graphs.dot import dot_text

SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
needs_graphviz = pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")


def drawn(text: str) -> ElementTree.Element:
    done = subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return ElementTree.fromstring(done.stdout)


@needs_graphviz
@pytest.mark.parametrize("level", LEVELS)
def test_graphviz_draws_the_nodes_edges_and_modules(level: str, graphs: LevelGraphs) -> None:
    root, graph = drawn(graphs.dot(level)), graphs.at(level)
    groups = list(root.iter(f"{SVG}g"))
    assert {g.get("id") for g in groups if g.get("class") == "node"} == {node.id for node in graph.nodes}
    assert {g.get("id") for g in groups if g.get("class") == "cluster"} >= {"layers", "layers/0", "layers/0/up"}
    edges = {(maker, node.id) for node in graph.nodes for maker, _ in node.reads}
    assert sum(g.get("class") == "edge" for g in groups) == len(edges)


@needs_graphviz
def test_nodes_of_saved_files_lead_to_the_level_below(graphs: LevelGraphs, tmp_path: Path) -> None:
    folder = graphs.save(tmp_path / "graphs")
    assert {one.name for one in folder.iterdir()} == {"model-explorer.json", *(f"{level}.dot" for level in LEVELS)}
    for level, below in pairwise(LEVELS):
        links = [link.get(LINK) or "" for link in drawn((folder / f"{level}.dot").read_text()).iter(f"{SVG}a")]
        known = {node.id for node in graphs.at(below).nodes}
        found = [link.removeprefix(f"{below}.dot.svg#") for link in links if link.startswith(below)]
        assert "layers/0/up/aten.linear" in found and set(found) <= known
    assert not any(
        "svg" in (link.get(LINK) or "") for link in drawn((folder / "superdsc.dot").read_text()).iter(f"{SVG}a")
    )


@needs_graphviz
def test_names_that_look_like_the_language() -> None:
    node = LevelNode('a"b\\n', 'x" -> "y\\', ("one; two }",), "op", figures={"line": 'C:\\new"'})
    root = drawn(dot_text('a "name"', LevelGraph("aten", (node,), {})))
    (drawn_node,) = (g for g in root.iter(f"{SVG}g") if g.get("class") == "node")
    assert [text.text for text in drawn_node.iter(f"{SVG}text")] == ['x" -> "y\\']
