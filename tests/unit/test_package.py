"""The package as somebody explores it: names, help, version, and objects in a notebook."""

from __future__ import annotations

import pydoc
import re
from html.parser import HTMLParser
from importlib.metadata import version
from typing import Any

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.ranks.cards import CardLoad, Cards
from spyre_mlir.ranks.model import RankedModel
from spyre_mlir.text.notebook import ShownAsText


@pytest.fixture(scope="module")
def compiled() -> spyre_mlir.CompiledModel:
    made = spyre_mlir.compile(nn.Linear(4, 3), (torch.ones(2, 4),))
    assert isinstance(made, spyre_mlir.CompiledModel)
    return made


def test_completion_and_help_show_public_names() -> None:
    assert {name for name in dir(spyre_mlir) if not name.startswith("_")} == set(spyre_mlir.__all__)
    text = pydoc.plain(pydoc.render_doc(spyre_mlir))
    assert all(f"    {name}(" in text for name in ("check", "compile", "info", "load"))
    assert spyre_mlir.__version__ == version("spyre-mlir")
    with pytest.raises(AttributeError, match="no attribute 'compil'"):
        _ = spyre_mlir.compil


def test_a_compiled_model_says_what_it_is(compiled: spyre_mlir.CompiledModel) -> None:
    assert repr(compiled) == f"<CompiledModel Linear: {compiled.kernels} kernels, (input 2x4) -> (output)>"


def test_a_model_with_symbols_says_them() -> None:
    shapes = ({0: torch.export.Dim("rows", min=2, max=9)},)
    dynamic = spyre_mlir.compile(nn.Linear(4, 3).eval(), (torch.ones(5, 4),), dynamic_shapes=shapes)
    assert repr(dynamic) == "<DynamicModel Linear: s0 2 to 9; 0 programs>"


@pytest.mark.parametrize("name", ["eval", "train", "parameters", "state_dict", "to"])
def test_attributes_of_modules_say_what_takes_their_place(name: str, compiled: spyre_mlir.CompiledModel) -> None:
    shapes = ({0: torch.export.Dim("rows", min=2, max=9)},)
    dynamic = spyre_mlir.compile(nn.Linear(4, 3).eval(), (torch.ones(5, 4),), dynamic_shapes=shapes)
    for model in (compiled, spyre_mlir.compile(nn.Linear(4, 3)), dynamic):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'; it is no torch.nn.Module: .*the model"):
            getattr(model, name)
        with pytest.raises(AttributeError, match=r"has no attribute 'reprot'$"):
            getattr(model, "reprot")  # noqa: B009 - a type checker knows that there is none


class Tags(HTMLParser):
    """The tags of a page in order, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        self.text += data


class Positive(nn.Module):
    """Data decides the size of its result."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[x > 0] * 2


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """An object of every public class that a cell may end in, of a model with markup in its names."""
    model = nn.Sequential()
    model.add_module("<b>bold</b> & co", nn.Linear(4, 3))
    model.add_module("last", nn.ReLU())
    evil = type("<script>Evil</script>", (nn.Sequential,), {})(model).eval()
    x = torch.ones(2, 4)
    compiled: Any = spyre_mlir.compile(evil, (x,))
    shapes = ({0: torch.export.Dim("rows", min=2, max=9)},)
    parted: Any = spyre_mlir.compile(Positive(), (x,), host_fallback="allow")
    parted(x)
    folder = tmp_path_factory.mktemp("shown")
    saved = compiled.save(folder / "<i>saved")
    broken = folder / "<i>broken.json"
    broken.write_text('{"<i>": 1}')
    loaded = spyre_mlir.load(saved)
    compiled.log.overflow("<b>mul", "<b>x", 3, 1e10)
    report = compiled.report()
    return {
        "accuracy": compiled.accuracy(x),
        "cards": Cards(((CardLoad(0, 900, 1.0, 0, 0, 0.0),),), 500),
        "check": spyre_mlir.check(broken),
        "compare": report.compare(report),
        "compiled": compiled,
        "dynamic": spyre_mlir.compile(evil, (torch.ones(5, 4),), dynamic_shapes=shapes),
        "explain": compiled.explain("linear"),
        "graphs": compiled.graphs(),
        "info": spyre_mlir.info(evil, (x,)),
        "lazy": spyre_mlir.compile(evil),
        "loaded": loaded,
        "log": compiled.log,
        "parted": parted,
        "plan": compiled.plan(),
        "program": spyre_mlir.import_program(evil, (x,)),
        "ranks": RankedModel([loaded]),
        "report": report,
        "timeline": report.timeline,
        "verify": compiled.verify(x),
    }


_SHOWN = [
    "accuracy",
    "cards",
    "check",
    "compare",
    "compiled",
    "dynamic",
    "explain",
    "graphs",
    "info",
    "lazy",
    "loaded",
    "log",
    "parted",
    "plan",
    "program",
    "ranks",
    "report",
    "timeline",
    "verify",
]


@pytest.mark.parametrize("name", _SHOWN)
def test_notebooks_show_what_is_printed_and_no_markup_of_the_user(name: str, objects: dict[str, Any]) -> None:
    assert sorted(objects) == _SHOWN
    html = objects[name]._repr_html_()
    page = Tags(html)
    assert page.tags == ["pre", "/pre"]
    assert page.text == str(objects[name])
    assert 0 < len(page.text) <= len(html) < 20_000


@pytest.mark.parametrize("name", _SHOWN)
def test_a_prompt_shows_text_too_and_never_the_fields(name: str, objects: dict[str, Any]) -> None:
    shown = repr(objects[name])
    assert shown == str(objects[name]) or (name == "explain" and len(shown) < 100)
    assert "Attr(" not in shown and "frozenset" not in shown
    found = type(objects[name]).__mro__
    assert any({"__str__", "__repr__"} & set(vars(c)) for c in found[: found.index(ShownAsText)]), "it has a text"


@pytest.mark.parametrize("name", ["accuracy", "check", "explain", "lazy", "log", "report"])
def test_markup_in_names_of_the_user_is_shown_as_written(name: str, objects: dict[str, Any]) -> None:
    assert any(f"&lt;{tag}&gt;" in objects[name]._repr_html_() for tag in ("b", "i", "script"))


def test_findings_print_their_number(objects: dict[str, Any]) -> None:
    found = objects["check"]
    assert isinstance(found, tuple)
    assert str(found).splitlines()[-1] == "1 error, 0 warnings"
    assert str(found).splitlines()[0] == str(found[0]).splitlines()[0]


def test_facts_of_a_program_are_one_line(objects: dict[str, Any]) -> None:
    assert re.fullmatch(r"<Program \w+: 2 aten ops, \(input 2x4\) -> \(output\)>", repr(objects["program"]))
    assert re.fullmatch(r"<Timeline: \d+ kernels, \d+ runs, [\d.]+ us, calibrated>", str(objects["timeline"]))
