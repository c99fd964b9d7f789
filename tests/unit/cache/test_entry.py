"""Entries: what is read is what was lowered, level for level and file for file; damage is found before it matters."""

from __future__ import annotations

import json
import zlib
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch
from torch import nn

from spyre_mlir.backend.rendered import render
from spyre_mlir.cache.entry import packed, unpacked
from spyre_mlir.errors import ReadError
from spyre_mlir.frontend import import_program
from spyre_mlir.options import CompileOptions
from spyre_mlir.pipeline import LEVELS, Lowered, lower
from spyre_mlir.text.render import module_text
from spyre_mlir.universe import make_context
from tests.end_to_end.models import llama, softmax
from tests.end_to_end.regions.stacks import stack


class Odd(nn.Module):
    """A step that the host takes, a constant, an integer input, and names that need quotes."""

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        chosen = torch.special.bessel_j1(x)[n]
        return torch.softmax(chosen * torch.arange(64.0), -1) + 0.1


ODD = (Odd(), (torch.randn(5, 64), torch.tensor([1, 0, 4])))
PROGRAMS = {
    "layers": (stack(1.5, 1.5, 1.5, 1.5), {}),
    "float32": (llama(1, 8), {"keep_float32": True}),
    "tiles": (stack(1.5), {"tile": False, "regions": False}),
    "concrete": (softmax(), {"loops": "unroll", "addresses": "concrete"}),
    "host": (ODD, {}),
}


@cache
def lowered_as(name: str) -> tuple[Lowered, CompileOptions]:
    (model, inputs), choices = PROGRAMS[name]
    options = CompileOptions(**choices)
    module = import_program(model, inputs).module
    return lower(module, make_context(), options=options.passes()), options


def read(content: bytes, options: CompileOptions | None = None) -> Lowered:
    return unpacked(content, make_context(), (options or CompileOptions()).passes())


@pytest.fixture(scope="module")
def content() -> bytes:
    lowered, _ = lowered_as("host")
    return packed(lowered, lowered.bundle())


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_read_is_what_was_lowered(name: str) -> None:
    lowered, options = lowered_as(name)
    found = read(packed(lowered, lowered.bundle()), options)
    assert tuple(found.modules) == LEVELS and len(found.modules) == len(LEVELS)
    for level in reversed(LEVELS):
        assert module_text(found.modules[level], locations=True) == module_text(lowered.modules[level], locations=True)
        assert found.modules[level].is_structurally_equivalent(lowered.modules[level])
        assert found.modules[level] is found.modules[level]
    assert found.records == [replace(record, seconds=0.0) for record in lowered.records]
    assert (found.host_steps, found.losses) == (lowered.host_steps, lowered.losses)


@pytest.mark.parametrize("name", PROGRAMS)
def test_files_are_those_of_the_lowered_program(name: str) -> None:
    lowered, options = lowered_as(name)
    bundle = render(lowered.modules[LEVELS[-1]], {level: lowered.modules[level] for level in LEVELS[:-1]})
    found = read(packed(lowered, lowered.bundle()), options).bundle()
    assert dict(found.texts) == dict(bundle.texts)
    assert found.manifest == bundle.manifest
    assert module_text(found.program()) == module_text(bundle.program())


def test_programs_with_host_steps_and_losses_are_among_them() -> None:
    assert lowered_as("host")[0].host_steps
    assert lowered_as("float32")[0].losses.narrowed


def test_no_level_is_read_before_it_is_asked_for(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spyre_mlir.cache.entry.parse_module", None)
    found = read(content)
    assert "sdsc_0.json" in " ".join(found.bundle().texts)
    with pytest.raises(TypeError):
        found.modules["aten"]


def test_there_is_no_other_level(content: bytes) -> None:
    with pytest.raises(KeyError):
        read(content).modules["machine"]


def changed(content: bytes, *path: str, value: Any) -> bytes:
    """An entry of other content."""
    whole = inner = json.loads(zlib.decompress(content))
    for name in path[:-1]:
        inner = inner[int(name) if isinstance(inner, list) else name]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return zlib.compress(json.dumps(whole).encode())


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["records"], None, "records"),
        (["records"], {}, "expected a list, got dict"),
        (["records", "0"], 1, "list indices|expected an object, got int"),
        (["records", "0", "ops"], "many", "ops of StageRecord is 'many'"),
        (["records", "0", "ops"], True, "ops of StageRecord is True"),
        (["records", "0", "more"], 1, "unexpected keyword argument 'more'"),
        (["host_steps", "0", "op"], 1, "op of HostStep is 1"),
        (["losses", "narrowed"], None, "narrowed"),
        (["levels", "aten"], None, "other levels"),
        (["levels", "aten"], 1, "a text is something else"),
        (["files", "program.mlir"], None, "program.mlir"),
        (["manifest"], [], "expected an object, got list"),
    ],
)
def test_content_of_another_form_is_refused(content: bytes, path: list[str], value: Any, message: str) -> None:
    if path == ["records", "0"]:
        spoiled = changed(content, "records", value=[1])
    else:
        spoiled = changed(content, *path, value=value)
    with pytest.raises(ReadError, match=message):
        read(spoiled)


def test_content_that_is_no_json_or_not_packed_is_refused(content: bytes) -> None:
    for spoiled in (b"", b"x", content[:-9], zlib.compress(b"{"), zlib.compress(b"[]"), zlib.compress(b"\xff")):
        with pytest.raises(ReadError):
            read(spoiled)


def test_content_beyond_all_measure_is_refused(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spyre_mlir.cache.entry._MOST_BYTES", 1000)
    with pytest.raises(ReadError):
        read(content)
