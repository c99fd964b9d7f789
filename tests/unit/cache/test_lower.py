"""Lowering by way of the cache: once per program, and again after any damage."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import spyre_mlir
from spyre_mlir.cache import entry
from spyre_mlir.cache import lower as cached
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.plugins import registry
from spyre_mlir.transforms.loop_to_kernel.precision_loss import NarrowedWarning
from spyre_mlir.transforms.utils.host_fallback import HostStepWarning

X = torch.randn(4, 64)


class Relu(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


class Bessel(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.bessel_j1(x)


class Product(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ x.T


class Softmax(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("SPYRE_MLIR_CACHE", str(tmp_path / "cache"))
    with registry.isolated():
        yield tmp_path / "cache"


@pytest.fixture
def lowerings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The programs that were really lowered."""
    found: list[str] = []
    lower = cached.lower

    def counted(module: Any, *args: Any, **options: Any) -> Any:
        found.append(module.sym_name.data)
        return lower(module, *args, **options)

    monkeypatch.setattr(cached, "lower", counted)
    return found


def compiled(model: nn.Module | None = None, **options: Any) -> CompiledModel:
    made = spyre_mlir.compile(model or Relu(), (X,), **options)
    assert isinstance(made, CompiledModel)
    return made


def entries(directory: Path) -> list[Path]:
    return sorted(directory.glob("*"))


def test_a_program_is_lowered_once(lowerings: list[str], directory: Path) -> None:
    for _ in range(3):
        assert torch.equal(compiled(numerics="exact")(X), torch.relu(X))
    assert lowerings == ["Relu"]
    assert len(entries(directory)) == 1


def test_a_rare_program_is_kept_the_second_time(lowerings: list[str], directory: Path) -> None:
    shapes = {"dynamic_shapes": ({0: torch.export.Dim("rows", min=2, max=9)},)}
    counts: list[tuple[int, int]] = []
    for rows in (5, 5, 5, 6):
        spyre_mlir.compile(Relu(), (X,), **shapes).compiled_for(torch.randn(rows, 64))  # pyright: ignore[reportAttributeAccessIssue]
        counts.append((len(lowerings), len(list(directory.glob("*.entry")))))
    assert counts == [(1, 0), (2, 1), (2, 1), (3, 1)]


def test_a_bucket_is_kept_at_once(lowerings: list[str], directory: Path) -> None:
    shapes = ({0: torch.export.Dim("rows", min=2, max=9)},)
    for _ in range(2):
        spyre_mlir.compile(Relu(), (X,), dynamic_shapes=shapes, buckets=[6])
    assert (len(lowerings), len(list(directory.glob("*.entry")))) == (1, 1)


def test_a_recalled_program_is_verified_and_saved_like_the_first(directory: Path, tmp_path: Path) -> None:
    first, second = compiled(Softmax()), compiled(Softmax())
    assert second.verify(X)
    assert second.mlir("superdsc", locations=True) == first.mlir("superdsc", locations=True)
    assert (second.kernels, second.timeline()) == (first.kernels, first.timeline())
    a, b = first.save(tmp_path / "a", levels=True), second.save(tmp_path / "b", levels=True)
    for path in a.rglob("*.*"):
        assert path.read_bytes() == (b / path.relative_to(a)).read_bytes(), path


def test_a_call_of_a_recalled_program_runs_its_files_and_lowers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, second = compiled(Softmax())(X), compiled(Softmax())

    def forbidden(*_: object) -> None:
        raise AssertionError("lowered")

    monkeypatch.setattr(entry, "lower_last", forbidden)
    assert torch.equal(second(X), expected)


@pytest.mark.parametrize("options", [{"prefer_device": True}, {"sdsc_version": "TS25"}])
def test_a_changed_option_misses(options: dict[str, Any], lowerings: list[str]) -> None:
    compiled()
    compiled(**options)
    assert lowerings == ["Relu", "Relu"]


def test_a_changed_plugin_misses(lowerings: list[str]) -> None:
    def registered(number: int) -> torch.Tensor:
        with registry.isolated():
            registry.register_decomposition("relu")(lambda build, self: self * float(number))
            return compiled(numerics="exact")(X)

    compiled()
    assert torch.equal(registered(2), X * 2)
    assert torch.equal(registered(3), X * 3)
    assert torch.equal(registered(2), X * 2)
    assert lowerings == ["Relu"] * 3


def test_what_has_no_identity_is_not_cached_and_is_said(
    lowerings: list[str], directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    thing = object()
    registry.register_fallback("silu")(lambda *_: thing)
    with caplog.at_level(logging.INFO, "spyre_mlir.cache"):
        compiled()
        compiled()
    assert lowerings == ["Relu", "Relu"]
    assert "not cached: an object of builtins.object has no identity" in caplog.text
    assert entries(directory) == []


def test_it_can_be_refused(lowerings: list[str], directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(cache=False)
    compiled(cache=False)
    monkeypatch.setenv("SPYRE_MLIR_CACHE", "off")
    compiled()
    assert len(lowerings) == 3
    assert entries(directory) == []


def test_a_size_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPYRE_MLIR_CACHE_SIZE", "0")
    with pytest.raises(InputError, match="SPYRE_MLIR_CACHE_SIZE"):
        compiled()


def spoiled_by(name: str, path: Path, other: Path) -> None:
    data = bytearray(path.read_bytes())
    if name.startswith("flip"):
        data[int(float(name.removeprefix("flip ")) * (len(data) - 1))] ^= 0x10
    path.write_bytes({"empty": b"", "half": data[: len(data) // 2], "swapped": other.read_bytes()}.get(name, data))


@pytest.mark.parametrize("how", ["flip 0", "flip 0.01", "flip 0.3", "flip 0.6", "flip 1", "empty", "half", "swapped"])
def test_a_damaged_entry_is_said_and_made_again(
    how: str, lowerings: list[str], directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    compiled()
    (path,) = entries(directory)
    right = path.read_bytes()
    compiled(Softmax())
    (other,) = set(entries(directory)) - {path}
    spoiled_by(how, path, other)
    assert torch.equal(compiled(numerics="exact")(X), torch.relu(X))
    assert lowerings == ["Relu", "Softmax", "Relu"]
    (said,) = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert "a cache entry is damaged, and the program is compiled again" in said.getMessage()
    assert str(path) in said.getMessage()
    assert path.read_bytes() == right
    compiled()
    assert len(lowerings) == 3


def test_an_entry_of_another_form_is_made_again(lowerings: list[str], directory: Path) -> None:
    """Its digest is right: somebody wrote it so."""
    from spyre_mlir.cache.store import Store

    compiled()
    (path,) = entries(directory)
    Store(directory, 1 << 20).write(path.stem, b"something else")
    compiled()
    assert len(lowerings) == 2


def test_host_steps_and_losses_are_told_again(lowerings: list[str]) -> None:
    for _ in range(2):
        with pytest.warns(HostStepWarning, match="bessel_j1"):
            compiled(Bessel())
        with pytest.warns(NarrowedWarning):
            compiled(Product(), keep_float32=True)
    assert lowerings == ["Bessel", "Product"]


def test_a_warning_names_the_line_that_compiles() -> None:
    for _ in range(2):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            compiled(Bessel())
        assert told[0].filename == __file__


def test_refused_host_steps_are_refused_again() -> None:
    compiled(Bessel(), host_fallback="allow")
    for _ in range(2):
        with pytest.raises(UnsupportedError, match="bessel_j1"):
            compiled(Bessel(), host_fallback="error")


def test_a_program_that_cannot_be_written_is_not_cached(
    directory: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from spyre_mlir.errors import EmitError
    from spyre_mlir.pipeline import Lowered

    def refuse(_: Lowered) -> None:
        raise EmitError("no file for that")

    monkeypatch.setattr(Lowered, "bundle", refuse)
    with caplog.at_level(logging.INFO, "spyre_mlir.cache"):
        compiled()
    assert "not cached: no file for that" in caplog.text
    assert entries(directory) == []


def test_torch_compile_takes_it_too(lowerings: list[str]) -> None:
    for _ in range(2):
        torch.compiler.reset()
        function = torch.compile(Relu(), backend="spyre", options={"numerics": "exact"})
        assert torch.equal(function(X), torch.relu(X))
    assert len(lowerings) == 1
