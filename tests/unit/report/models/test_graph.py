"""The picture of a model: what is drawn, in which colours, and that a browser draws it."""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

import spyre_mlir
from spyre_mlir.report.models.graph import COLOURS, Graph, Node, mermaid, svg

SVG = "{http://www.w3.org/2000/svg}"


class Skip(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.special.bessel_j1(torch.softmax(torch.relu(x), -1))


@pytest.fixture(scope="module")
def graph() -> Graph:
    return spyre_mlir.info(Skip(), (torch.zeros(4, 8),)).graph


def test_nodes_and_edges(graph: Graph) -> None:
    assert [(n.label, n.kind, n.detail) for n in graph.nodes.values()] == [
        ("x", "input", "4x8xf32"),
        ("relu", "native", "4x8xf32"),
        ("softmax.int", "composed", "4x8xf32"),
        ("special_bessel_j1", "host", "4x8xf32"),
        ("add.Tensor", "native", "4x8xf32"),
        ("output", "output", "4x8xf32"),
    ]
    labels = {key: node.label for key, node in graph.nodes.items()}
    assert [(labels[a], labels[b]) for a, b in graph.edges] == [
        ("x", "relu"),
        ("relu", "softmax.int"),
        ("softmax.int", "special_bessel_j1"),
        ("x", "add.Tensor"),
        ("special_bessel_j1", "add.Tensor"),
        ("add.Tensor", "output"),
    ]
    assert __file__ in next(n for n in graph.nodes.values() if n.label == "relu").source


def test_mermaid(graph: Graph) -> None:
    lines = mermaid(graph).splitlines()
    assert lines[0] == "flowchart TD"
    assert '  op2["special_bessel_j1<br/>4x8xf32"]:::host' in lines
    assert "  in0 --> op3" in lines
    assert {f"  classDef {kind} fill:{colour}" for kind, colour in COLOURS.items()} <= set(lines)


def test_svg_is_xml_with_a_box_per_node_and_layers(graph: Graph) -> None:
    root = ElementTree.fromstring(svg(graph))
    groups = root.findall(f"{SVG}g")
    assert len(groups) == 6
    assert len(root.findall(f"{SVG}path")) == 6
    fills = [g.find(f"{SVG}rect").attrib["fill"] for g in groups]
    assert fills == [COLOURS[n.kind] for n in graph.nodes.values()]
    heights = [int(g.find(f"{SVG}rect").attrib["y"]) for g in groups]
    assert heights == sorted(set(heights)), "every node below what it reads"
    width, height = int(root.attrib["width"]), int(root.attrib["height"])
    for rect in root.iter(f"{SVG}rect"):
        assert int(rect.attrib["x"]) + int(rect.attrib["width"]) <= width
        assert int(rect.attrib["y"]) + int(rect.attrib["height"]) <= height


def test_names_are_escaped() -> None:
    odd = Graph({"a": Node("a", 'x<y & "z"', "", "native")}, [])
    assert 'x<y & "z"' in ElementTree.fromstring(svg(odd)).find(f"{SVG}g/{SVG}text").text
    assert "\"x<y & 'z'<br/>\"" in mermaid(odd)


def test_a_browser_draws_it(graph: Graph, tmp_path: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    browser_path = shutil.which("chromium")
    if browser_path is None:
        pytest.skip("chromium is not installed")
    path = tmp_path / "graph.svg"
    path.write_text(svg(graph))
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(offline=True).new_page()
        page.goto(path.as_uri())
        boxes = page.evaluate("[...document.querySelectorAll('rect')].map(r => r.getBoundingClientRect().height)")
        assert len(boxes) == 6 and min(boxes) > 10
        # No text leaves its box.
        inside = page.evaluate(
            "[...document.querySelectorAll('g')].every(g => { const r = g.querySelector('rect')"
            ".getBoundingClientRect();"
            " return [...g.querySelectorAll('text')].every(t => t.getBoundingClientRect().right <= r.right + 1) })"
        )
        assert inside
        browser.close()
