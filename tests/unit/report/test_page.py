"""The page: it stands alone, says what the timeline says, and a browser shows it without complaint."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import spyre_mlir
from spyre_mlir.debug.error_walk import KernelError
from spyre_mlir.hw.cost import Bottleneck
from spyre_mlir.machine.bundle.timeline import Timeline
from spyre_mlir.report.accuracy import Accuracy
from spyre_mlir.report.host_steps import HostWork
from spyre_mlir.report.page import comparison_text, page_text, share_rows
from spyre_mlir.report.plan_picture import PlannedAxis, PlannedFunction, PlannedOperand, PlannedRow
from spyre_mlir.report.plots import Scale, short
from spyre_mlir.report.shares import by_line
from tests.browser import shown

VOID = {"meta", "link"}
SECTIONS = ["advice", "by-function", "by-module", "by-line", "roofline", "cores", "lx", "kernels", "host", "faults"]


class Outline(HTMLParser):
    """Elements in order, and whether every one is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element without contents."""
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        """Closes the element opened last."""
        assert self.open.pop() == tag


def outline(html: str) -> Outline:
    parsed = Outline()
    parsed.feed(html)
    assert not parsed.open
    return parsed


@pytest.fixture(scope="module")
def html(softmax_timeline: Timeline) -> str:
    return page_text("soft<max>", softmax_timeline, [HostWork("to the device", 1, 1_048_576)], ["a fault & more"])


def test_it_is_whole_and_refers_to_nothing_outside(html: str) -> None:
    elements = outline(html).elements
    assert [a["id"] for tag, a in elements if tag == "section"] == SECTIONS
    assert not [tag for tag, _ in elements if tag in ("img", "iframe")]
    assert [attributes for tag, attributes in elements if tag == "script"] == [{}]
    for _, attributes in elements:
        assert all((attributes.get(name) or "data:").startswith("data:") for name in ("href", "src"))
    assert "url(" not in html and "@import" not in html
    assert ("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}) in elements


def test_names_are_text_not_markup(html: str) -> None:
    assert "soft&lt;max&gt;" in html and "a fault &amp; more" in html


def test_every_kernel_and_every_line_is_there(html: str, softmax_timeline: Timeline) -> None:
    for kernel in softmax_timeline.kernels:
        assert f"<code>{kernel.launch.file}</code>" in html
    (row,) = share_rows(by_line(softmax_timeline))
    assert row.name.startswith("conftest.py:") and row.part == pytest.approx(1.0)
    assert row.us == pytest.approx(softmax_timeline.total_us)


def test_plots_have_a_mark_per_run_and_per_buffer(html: str, softmax_timeline: Timeline) -> None:
    figures = html.split("<figure>")[1:]
    assert len(figures) == 3
    assert figures[0].count('class="mark') == len(softmax_timeline.kernels)
    assert figures[1].count('class="mark') == len(softmax_timeline.runs)
    assert figures[2].count('class="mark lx"') == len(softmax_timeline.residents) > 0


def test_a_run_too_short_for_its_scale_is_a_thin_bar(softmax_timeline: Timeline) -> None:
    first, *others = softmax_timeline.runs
    short = replace(softmax_timeline, runs=(*others, (first[0], first[1], 1e-9)))
    figure = page_text("p", short, [], None).split("<figure>")[2]
    assert figure.count('<rect class="mark') == len(short.runs) and "<circle" not in figure
    assert min(float(width) for width in re.findall(r'<rect class="mark[^>]*? width="([\d.]+)"', figure)) >= 0.5


def test_the_colours_are_explained(html: str) -> None:
    legend = html.partition('<section id="by-function">')[2].partition("</p>")[0]
    style = html.partition("<style>")[2].partition("</style>")[0]
    keys = re.findall(r'<span class="key (\w+)"></span>(\w+), ', legend)
    assert {*keys} == {(one.value, one.value) for one in Bottleneck}
    assert all(f".key.{name} {{ background" in style for name, _ in keys)


def test_marks_stay_in_their_frame(html: str) -> None:
    for x, width in re.findall(r'<rect class="mark[^>]*? x="([\d.]+)"[^>]*? width="([\d.]+)"', html):
        assert float(x) >= 63.9 and float(x) + float(width) <= 708.1


def test_accuracy_is_a_table_of_launches_and_a_sentence(softmax_timeline: Timeline) -> None:
    bad = KernelError("sdsc_1.json", "mul", "l.0.<a>", "m.py:7", 0.4651, 0.001, overflows=62)
    good = KernelError("sdsc_0.json", "exp", "", "", 2e-4, 1e-4, underflows=3)
    page = page_text("p", softmax_timeline, [], None, (), Accuracy((0.4,), walk=lambda: [good, bad]))
    assert [a["id"] for tag, a in outline(page).elements if tag == "section"].count("accuracy") == 1
    section = page.partition('<section id="accuracy">')[2].partition("</section>")[0]
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in section.split("<tr>")[2:]]
    assert cells == [
        [
            "<code>sdsc_1.json</code>",
            "mul",
            "1.0e-03",
            "4.7e-01",
            "62",
            "",
            "<code>l.0.&lt;a&gt;</code>",
            "m.py:7",
        ],
        ["<code>sdsc_0.json</code>", "exp", "1.0e-04", "2.0e-04", "", "3", "<code></code>", ""],
    ]
    assert "62 results are beyond 8,573,157,376, the largest DLFloat16, first in mul at m.py:7" in section
    assert "accuracy" not in page_text("p", softmax_timeline, [], None)


def test_an_unknown_run_and_a_clean_one(softmax_timeline: Timeline) -> None:
    assert "has not run" in page_text("p", softmax_timeline, [], None)
    assert "None in the last run" in page_text("p", softmax_timeline, [], [])


@pytest.mark.parametrize(
    ("value", "text"), [(0.0, "0"), (1500, "1.5 k"), (98.304e12, "98.3 T"), (2e15, "2 P"), (12.34, "12.3")]
)
def test_short_numbers(value: float, text: str) -> None:
    assert short(value) == text


def test_scales() -> None:
    linear, log = Scale(0, 10, 100, 200), Scale(0.1, 1000, 0, 400, logarithmic=True)
    assert (linear(0), linear(5), linear(10)) == (100, 150, 200)
    assert (log(0.1), log(10), log(1000)) == (0, 200, 400)
    assert [t.label for t in log.ticks()] == ["0.1", "1", "10", "100", "1 k"]
    assert [t.label for t in linear.ticks()] == ["0", "2", "4", "6", "8", "10"]


def layered(timeline: Timeline, layers: int = 3) -> Timeline:
    """The kernels again and again, as in equal layers, and once before them."""
    places = [
        ("", ""),
        *((f"model.layers.{n}", f"model.layers.{n}.a_module_with_a_long_name.q") for n in range(layers)),
    ]
    kernels = [
        replace(kernel, launch=replace(kernel.launch, layer=layer, module=module))
        for layer, module in places
        for kernel in timeline.kernels
    ]
    return replace(timeline, kernels=tuple(kernels))


def test_layers_are_folded(softmax_timeline: Timeline) -> None:
    page = page_text("p", layered(softmax_timeline), [], None)
    kernels = page.partition('<section id="kernels">')[2].partition("</section>")[0]
    count, us = len(softmax_timeline.kernels), sum(k.cost.total for k in softmax_timeline.kernels)
    found = re.findall(
        r'<details class="layer"><summary><code>(.*?)</code>: (\d+) kernels, (.*?) us</summary>', kernels
    )
    assert found == [(f"model.layers.{n}", str(count), f"{us:.2f}") for n in range(3)]
    modules = page.partition('<section id="by-module">')[2].partition("</section>")[0]
    folded = "<summary><code>model.layers.*.a_module_with_a_long_name.q</code>"
    assert f'{folded} <span class="count">3 modules</span></summary>' in modules
    assert modules.count(f"</code> {us:.2f} us</div>") == 3


def column(page: Any, section: str, number: int) -> list[str]:
    """The cells of a column that are not hidden, from top to bottom."""
    rows = f"[...document.querySelectorAll('#{section} tbody tr:not([hidden])')]"
    return page.evaluate(f"{rows}.map(row => row.cells[{number}].textContent)")


def test_the_plan_has_a_row_per_kernel_and_is_left_out_where_it_is_not_known(
    softmax: spyre_mlir.CompiledModel, softmax_timeline: Timeline, html: str, tmp_path: Path
) -> None:
    softmax.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    outline(page)
    plan = page.partition('<section id="plan">')[2].partition("</section>")[0]
    for kernel in softmax_timeline.kernels:
        assert plan.count(f" <code>{kernel.launch.file.removesuffix('.json')}</code></td>") == 1
    assert plan.count('class="marked">1024</span>') > 0
    assert plan.count('class="tensor lx"') > 0
    assert '<section id="plan">' not in html


def plan() -> PlannedFunction:
    """A function with a row that is as wide as rows get."""
    axes = tuple(PlannedAxis(f"d{n} 1048576/32", marked=n == 0) for n in range(6))
    operand = PlannedOperand("a_value_with_a_long_name", axes, "lx", "about <it>")
    kernel = PlannedRow(2, "sdsc_0", "batchmatmul", axes, 32, (operand,) * 3, (operand,), "a copy, for <b>")
    return PlannedFunction("layers", 3, (PlannedRow(1, "", "4 trips"), kernel))


def test_names_in_a_plan_are_text_not_markup(softmax_timeline: Timeline) -> None:
    page = page_text("p", softmax_timeline, [], None, plan=[plan()])
    outline(page)
    assert "for &lt;b&gt;" in page and "about &lt;it&gt;" in page
    assert "<summary>layers, kernels: 1, calls: 3</summary>" in page


def test_a_browser_shows_it(softmax_timeline: Timeline, tmp_path: Path) -> None:
    timeline = layered(softmax_timeline)
    comparison = comparison_text("a to b", "peak", ["before"], {"total": [["time", "3"]], "module": [["l" * 90, "2"]]})
    for html, plots, count in (
        (page_text("p", timeline, [], None, plan=[plan()]), 3, len(timeline.kernels)),
        (comparison, 0, 0),
    ):
        with shown(html, tmp_path) as page:
            for width in (360, 390, 1000, 1920):
                page.set_viewport_size({"width": width, "height": 800})
                assert page.evaluate("document.documentElement.scrollWidth") <= width
            drawn = page.evaluate("[...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect().height)")
            assert len(drawn) == plots and min(drawn, default=101) > 100
            assert page.evaluate("document.querySelectorAll('#kernels tbody tr').length") == count
            page.emulate_media(media="print")
            assert len(page.pdf()) > 1000


def test_tables_are_sorted_and_filtered_with_the_keyboard_alone(softmax_timeline: Timeline, tmp_path: Path) -> None:
    times = [f"{k.cost.total:.2f}" for k in softmax_timeline.kernels]
    names = [k.launch.file for k in softmax_timeline.kernels]
    with shown(page_text("p", layered(softmax_timeline, 1), [], None), tmp_path) as page:
        assert page.evaluate("document.querySelectorAll('#kernels th button').length") == 2 * 10
        page.focus("#kernels th:nth-child(3) button")
        page.keyboard.press("Enter")
        assert column(page, "kernels", 2)[: len(times)] == sorted(times, key=float, reverse=True)
        sort = "document.querySelector('#kernels th[aria-sort]').ariaSort"
        assert page.evaluate(sort) == "descending"
        page.keyboard.press("Space")
        assert column(page, "kernels", 2)[: len(times)] == sorted(times, key=float)
        assert page.evaluate(sort) == "ascending"
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Shift+Tab")
        page.keyboard.type(names[-1].upper())
        assert column(page, "kernels", 0) == [names[-1]] * 2
        assert page.evaluate("document.querySelector('#kernels details').open")
        assert page.inner_text("#kernels output") == f"2 of {2 * len(names)} rows"
        page.keyboard.press("Control+A")
        page.keyboard.press("Delete")
        assert len(column(page, "kernels", 0)) == 2 * len(names)


def test_a_comparison_has_a_table_for_each_kind_of_row() -> None:
    rows = {
        "total": [["time, us", "10.0", "7.00", "-3.00", "0.70 x"]],
        "function": [["<exp>", "0", "1.00", "+1.00", ""]],
    }
    page = comparison_text("a to b", "peak", ["before", "after", "change", "ratio"], rows)
    assert [a["id"] for tag, a in outline(page).elements if tag == "section"] == ["total", "by-function"]
    assert "predictions of the peak profile" in page and "<code>&lt;exp&gt;</code>" in page
    assert '<td class="n less">-3.00</td>' in page and '<td class="n more">+1.00</td>' in page
