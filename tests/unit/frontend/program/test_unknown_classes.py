"""Programs saved with classes that a later process has not registered with torch."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from torch.utils import _pytree

import spyre_mlir
from spyre_mlir.cli.compile import run
from spyre_mlir.errors import ImportProgramError
from spyre_mlir.frontend.capture.archive import load_pt2
from spyre_mlir.frontend.program.unknown_classes import (
    is_stand_in,
    modules_of_keys,
    names_of_classes,
    stand_ins_for,
    structures_of,
)

CLASSES = """
from collections import namedtuple
from dataclasses import dataclass
from enum import Enum
import torch

Pair = namedtuple("Pair", "low high")
Colour = Enum("Colour", "RED GREEN")

@dataclass
class Output:
    logits: torch.Tensor
    ends: Pair
    states: tuple

torch.export.register_dataclass(Output, serialized_type_name="far.Output")
torch.utils._pytree._register_namedtuple(Pair, serialized_type_name="far.Pair")
"""
WRITE = """
import torch, far

class Classes(torch.nn.Module):
    def forward(self, x):
        return far.Output(x * 2, far.Pair(x.amin(0), x.amax(0)), (x + 1,))

class Keys(torch.nn.Module):
    def forward(self, x):
        return {far.Colour.RED: x * 2}

for model in (Classes(), Keys()):
    name = type(model).__name__
    torch.export.save(torch.export.export(model, (torch.ones(3, 4),)), f"{name}.pt2")
"""
X = torch.randn(3, 4)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs that another process has written, with classes of a module that this one has not."""
    folder = tmp_path_factory.mktemp("far")
    (folder / "far.py").write_text(CLASSES)
    (folder / "write.py").write_text(WRITE)
    subprocess.run([sys.executable, "write.py"], cwd=folder, check=True)
    return folder


@pytest.fixture
def program(saved: Path) -> Path:
    return saved / "Classes.pt2"


def test_a_program_is_compiled_and_its_results_are_in_order(program: Path, tmp_path: Path) -> None:
    compiled = spyre_mlir.compile(program, numerics="exact")
    logits, (low, high), (state,) = compiled(X)
    for got, expected in ((logits, X * 2), (low, X.amin(0)), (high, X.amax(0)), (state, X + 1)):
        torch.testing.assert_close(got, expected)
    compiled.save(tmp_path / "bundle")
    logits, (_, high), _ = spyre_mlir.load(tmp_path / "bundle")(X)
    torch.testing.assert_close(logits, X * 2, atol=0.01, rtol=0.01)
    torch.testing.assert_close(high, X.amax(0), atol=0.01, rtol=0.01)


def test_the_text_names_the_class_and_its_parts(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([str(program), "--emit", "aten"]) == 0
    text = capsys.readouterr().out
    assert "far.Output(_, far.Pair(_, _, context=None), (_,), context=[['logits', 'ends', 'states'], []])" in text
    for name in ("logits", "ends.0", "ends.1", "states.0"):
        assert f'aten.name = "{name}"' in text


def test_no_name_stays_registered(program: Path) -> None:
    tree = load_pt2(program).call_spec.out_spec
    assert tree is not None and is_stand_in(tree.type)
    assert "far.Output" not in _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE
    assert "far.Pair" not in _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE


def test_registered_classes_have_no_stand_in() -> None:
    before = dict(_pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE)
    with stand_ins_for(["builtins.tuple", "collections.OrderedDict"]):
        assert before == _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE


def test_a_class_that_is_registered_meanwhile_stays() -> None:
    with stand_ins_for(["near.Late"]):
        late = type("Late", (), {})
        _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE["near.Late"] = late
    assert _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE.pop("near.Late") is late


def test_keys_of_an_enumeration_import_nothing(saved: Path) -> None:
    with pytest.raises(ImportProgramError, match="has keys of an enumeration of far, which loading would import"):
        load_pt2(saved / "Keys.pt2")
    assert "far" not in sys.modules


def test_classes_of_a_structure_are_found(program: Path) -> None:
    with zipfile.ZipFile(program) as archive:
        name = next(n for n in archive.namelist() if n.endswith("models/model.json"))
        found = names_of_classes(structures_of(json.loads(archive.read(name))))
    assert {"far.Output", "far.Pair", "builtins.tuple"} <= found


def test_texts_that_are_no_structures_name_nothing() -> None:
    for spec in ("", "[1, {", "{}", '[1, {"children_spec": [], "type": 3, "context": null}]'):
        structures = structures_of({"out_spec": spec})
        assert names_of_classes(structures) == set()
        assert modules_of_keys(structures) == set()
