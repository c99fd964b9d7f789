"""Our dialects and passes are found, load late, and contexts know a card."""

import dataclasses
from importlib.metadata import entry_points

import pytest
from xdsl.universe import Universe

from spyre_mlir import universe
from spyre_mlir.dialects.context import SpyreContext
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.universe import SPYRE_UNIVERSE, UPSTREAM_DIALECTS, make_context

SMALL = dataclasses.replace(SPYRE, cores_per_card=2)


def test_stock_tools_find_us():
    if not [entry for entry in entry_points(group="xdsl.universe") if entry.name == "spyre_mlir"]:
        pytest.skip("the project is not installed in this environment")
    everything = Universe.get_multiverse()
    assert SPYRE_UNIVERSE.all_dialects.items() <= everything.all_dialects.items()
    assert SPYRE_UNIVERSE.all_passes.items() <= everything.all_passes.items()


@pytest.mark.parametrize("name", SPYRE_UNIVERSE.all_passes)
def test_pass_is_called_as_it_is_registered(name: str):
    assert SPYRE_UNIVERSE.all_passes[name]().name == name


@pytest.mark.parametrize("name", SPYRE_UNIVERSE.all_dialects)
def test_dialect_is_called_as_it_is_registered(name: str):
    assert SPYRE_UNIVERSE.all_dialects[name]().name == name


def test_context_loads_nothing_early():
    context = make_context()
    assert list(context.loaded_dialects) == []
    assert {*UPSTREAM_DIALECTS, "aten", "spyre", "superdsc", "sdscbundle"} <= set(context.registered_dialect_names)
    assert context.get_optional_op("func.return") is not None
    assert [dialect.name for dialect in context.loaded_dialects] == ["func"]


def test_clone_keeps_the_machine_and_the_registry():
    context = make_context(SMALL)
    context.allow_unregistered = True
    copy = context.clone()
    assert isinstance(copy, SpyreContext)
    assert copy.spec is SMALL
    assert copy.allow_unregistered
    copy.get_optional_op("func.return")
    assert "func" in copy.registered_dialect_names or list(copy.loaded_dialects)
    assert list(context.loaded_dialects) == []


def test_a_context_has_what_plugins_add(monkeypatch: pytest.MonkeyPatch):
    loaded: list[str] = []
    monkeypatch.setattr(universe, "load_plugins", lambda: loaded.append("all"))
    make_context()
    assert loaded == ["all"]
