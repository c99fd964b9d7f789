"""Lists of passes and operators: rows, and how they are written."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from jsonschema_rs import Draft202012Validator
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from spyre_mlir.cli.support.lists import (
    OP_COLUMNS,
    PASS_COLUMNS,
    op_rows,
    ops_json,
    option_values,
    pass_rows,
    passes_json,
    print_list,
)
from spyre_mlir.plugins import registry
from tests.paths import ROOT


@dataclass(frozen=True)
class PlainPass(ModulePass):
    """Says something.

    And more.
    """

    name = "plain"

    def apply(self, ctx: Context, op: ModuleOp) -> None: ...


@dataclass(frozen=True)
class ChoosingPass(ModulePass):
    """Chooses."""

    name = "choosing"
    how: Literal["this-way", "other"] = "other"
    depth: int = 1
    deep: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None: ...


def unloaded() -> type[ModulePass]:
    raise AssertionError("a pass of others is not loaded")


def test_our_passes_come_first_in_their_order_with_options_and_meaning() -> None:
    available: dict[str, Callable[[], type[ModulePass]]] = {
        "z-other": unloaded,
        "choosing": lambda: ChoosingPass,
        "a-other": unloaded,
        "plain": lambda: PlainPass,
    }
    assert pass_rows(available, ["plain", "choosing"]) == [
        ("plain", "spyre", "", "Says something."),
        ("choosing", "spyre", "how=this-way|other depth=int deep=bool", "Chooses."),
        ("a-other", "xdsl", "", ""),
        ("z-other", "xdsl", "", ""),
    ]
    assert PASS_COLUMNS == ("pass", "from", "options", "meaning")


def test_a_pass_of_a_plugin_is_under_its_name() -> None:
    with registry.isolated():
        registry.register_pass("aten")(PlainPass)
        rows = pass_rows({"plain": lambda: PlainPass}, ["plain"])
    assert rows == [("plain", f"{__name__}.PlainPass", "", "Says something.")]


def test_rows_of_operators() -> None:
    """Declared facts of a few: a kernel, one in both formats, a view, and a composition."""
    rows = {row[0]: row[1:] for row in op_rows()}
    assert OP_COLUMNS == ("op", "support", "family", "hardware function", "unit", "formats")
    assert rows["aten.tanh"] == ("native", "pointwise", "tanh", "sfp", "DL16")
    assert rows["aten.add.Tensor"] == ("native", "pointwise", "add", "sfp", "DL16 FP32")
    assert rows["aten.mm"] == ("native", "contraction", "batchmatmul", "pt", "DL16")
    assert rows["aten.view"] == ("native", "view", "", "", "")
    assert rows["aten.addmm"][:2] == ("composed", "composite")
    assert all(len(row) == 5 for row in rows.values())


def test_every_overload_has_a_row() -> None:
    names = [row[0] for row in op_rows()]
    assert len(set(names)) == len(names)
    assert {"aten.sum", "aten.sum.dim_IntList"} <= set(names)


def follows_its_schema(name: str, text: str) -> Any:
    """The value of a JSON file, if it is as the schema of that name says and nothing more may stand in it."""
    schema = json.loads((ROOT / "docs" / "reference" / f"{name}.schema.json").read_text(encoding="utf-8"))
    value = json.loads(text)
    assert [error.message for error in Draft202012Validator(schema).iter_errors(value)] == []
    assert not Draft202012Validator(schema).is_valid({**value, "more": 1})
    return value


def test_passes_for_programs() -> None:
    available: dict[str, Callable[[], type[ModulePass]]] = {"z-other": unloaded, "choosing": lambda: ChoosingPass}
    value = follows_its_schema("passes", passes_json(available, ["choosing"]))
    options = {"how": ["this-way", "other"], "depth": ["int"], "deep": ["bool"]}
    assert value["passes"] == [
        {"name": "choosing", "from": "spyre", "options": options, "meaning": "Chooses."},
        {"name": "z-other", "from": "xdsl", "options": None, "meaning": None},
    ]


def test_operators_for_programs() -> None:
    value = follows_its_schema("ops", ops_json())
    ops = {op.pop("name"): op for op in value["ops"]}
    assert len(ops) == len(op_rows())
    assert ops["aten.add.Tensor"] == {
        "support": "native",
        "family": "pointwise",
        "function": "add",
        "unit": "sfp",
        "formats": ["DL16", "FP32"],
    }
    assert (ops["aten.view"]["function"], ops["aten.view"]["unit"], ops["aten.view"]["formats"]) == (None, None, [])


def test_a_list_in_a_pipe_is_tab_separated(capsys: pytest.CaptureFixture[str]) -> None:
    print_list(("a", "b"), [("1", ""), ("[x]", "2")])
    assert capsys.readouterr().out == "a\tb\n1\t\n[x]\t2\n"


def test_a_list_on_a_terminal_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    print_list(("first", "second"), [("1", "[bold]2")])
    text = out.getvalue()
    assert "\t" not in text
    assert "first" in text and "second" in text
    assert "[bold]2" in text
    assert "│" in text


@dataclass(frozen=True)
class ManyPass(ModulePass):
    """Takes several values of an option."""

    name = "many"
    parts: tuple[str, ...] = ()
    sizes: tuple[int, ...] | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None: ...


def test_options_that_take_several_values_say_so() -> None:
    assert option_values(ManyPass) == {"parts": ("str,...",), "sizes": ("int,...", "None")}
