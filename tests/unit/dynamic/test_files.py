"""A model with symbols as a directory: what is loaded computes what was saved, and lowers nothing again."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

import spyre_mlir
from spyre_mlir.backend.stored import read_bundle
from spyre_mlir.cache import lower as cached
from spyre_mlir.cli import compile as compile_tool
from spyre_mlir.cli import run as run_tool
from spyre_mlir.dynamic.model import DynamicModel
from spyre_mlir.errors import InputError, ReadError
from spyre_mlir.universe import make_context


class Counted(nn.Module):
    """A layer; where data counts, it counts its rows in a buffer."""

    def __init__(self, *, counts: bool = False) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.layer = nn.Linear(4, 3)
        self.register_buffer("seen", torch.zeros(()))
        self.counts = counts

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        if self.counts:
            self.seen.add_(x.shape[0])
        return self.layer(x).relu(), self.seen + 0


class Halves(nn.Module):
    """Two sizes, positions that are known for each, and a condition on the sizes."""

    def forward(self, x: Tensor, *, y: Tensor) -> Tensor:
        torch._check(x.shape[0] != y.shape[0])
        return (x[:, None] * y[None]).sum(0) + torch.arange(y.shape[0])


SHAPES: Any = ({0: Dim("rows", min=2, max=9)},)


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPYRE_MLIR_CACHE", "off")


@pytest.fixture
def lowerings(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The modules that were really lowered."""
    found: list[object] = []
    lower = cached.lower
    monkeypatch.setattr(cached, "lower", lambda m, *args, **kwargs: found.append(m) or lower(m, *args, **kwargs))
    return found


def compiled(model: nn.Module | None = None, **options: Any) -> DynamicModel:
    made = spyre_mlir.compile(
        model or Counted(), (torch.ones(5, 4),), dynamic_shapes=SHAPES, numerics="exact", **options
    )
    assert isinstance(made, DynamicModel)
    return made


def loaded(folder: Path, **choices: Any) -> DynamicModel:
    made = spyre_mlir.load(folder, **{"numerics": "exact", **choices})
    assert isinstance(made, DynamicModel)
    return made


def agrees(model: Any, rows: int) -> bool:
    x = torch.randn(rows, 4)
    return torch.allclose(model(x)[0], Counted()(x)[0], atol=1e-6)


def test_what_was_lowered_is_not_lowered_again(tmp_path: Path, lowerings: list[object]) -> None:
    model = compiled()
    assert all(agrees(model, rows) for rows in (1, 2, 7))
    before = len(lowerings)
    again = loaded(model.save(tmp_path / "saved"))
    assert all(agrees(again, rows) for rows in (7, 2, 1))
    assert (before, len(lowerings)) == (3, 3)
    assert agrees(again, 9)  # a new size
    assert len(lowerings) == 4
    assert (again.name, again.symbols) == (model.name, model.symbols)
    assert again.verify(torch.randn(2, 4))


def test_buckets_are_proved_once(tmp_path: Path, lowerings: list[object], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = compiled(buckets=[4, 8]).save(tmp_path / "saved")
    lowerings.clear()
    monkeypatch.setattr("spyre_mlir.builders.check_bucket", lambda *_, **__: pytest.fail("proved again"))
    again = loaded(folder)
    assert all(agrees(again, rows) for rows in (3, 8, 5))
    assert (lowerings, len(again.programs)) == ([], 2)


def test_a_bucket_of_another_program_is_proved(tmp_path: Path) -> None:
    folder = compiled(buckets=[4]).save(tmp_path / "saved")
    text = (folder / "sizes.json").read_text().replace('"cores_per_card": 32', '"cores_per_card": 16')
    (folder / "sizes.json").write_text(text)
    assert agrees(loaded(folder), 3)


def test_conditions_and_keywords_are_those_of_the_model(tmp_path: Path) -> None:
    n, m = Dim.AUTO, Dim.AUTO
    model = Halves()
    made = spyre_mlir.compile(
        model, (torch.ones(3),), {"y": torch.ones(4)}, dynamic_shapes={"x": {0: n}, "y": {0: m}}, numerics="exact"
    )
    again: Any = loaded(made.save(tmp_path / "saved"))
    for first, second in ((3, 4), (17, 8)):
        x, y = torch.randn(first), torch.randn(second)
        torch.testing.assert_close(again(x, y=y), model(x, y=y))
    with pytest.raises(InputError):
        again(torch.ones(5), y=torch.ones(5))


def test_sizes_that_torch_cannot_read_again_are_refused_at_once(tmp_path: Path) -> None:
    shapes = {"x": {0: Dim("n", min=2, max=40)}, "y": {0: 2 * Dim("half", min=1, max=20)}}
    made: Any = spyre_mlir.compile(Halves(), (torch.ones(3),), {"y": torch.ones(4)}, dynamic_shapes=shapes)
    with pytest.raises(InputError, match=r"a size is 2\*s\d+") as no:
        made.save(tmp_path / "saved")
    assert "a symbol of its own" in str(no.value)
    assert not (tmp_path / "saved").exists()


def test_buffers_are_saved_as_they_are_and_shared_by_all_sizes(tmp_path: Path) -> None:
    model = compiled(Counted(counts=True))
    assert [float(model(torch.ones(rows, 4))[1]) for rows in (2, 1, 3)] == [2, 3, 6]
    again = loaded(model.save(tmp_path / "saved"))
    assert [float(again(torch.ones(rows, 4))[1]) for rows in (2, 3, 4)] == [8, 11, 15]
    assert float(model(torch.ones(2, 4))[1]) == 8
    with pytest.raises(InputError, match="symbol s0 is 1"):  # a bundle would have a buffer of its own
        again(torch.ones(1, 4))


def test_other_weights(tmp_path: Path) -> None:
    other = {name: -2 * value for name, value in Counted().state_dict().items()}
    folder = compiled(specializations=2).bind(other).save(tmp_path / "bound")
    again, x = loaded(folder), torch.randn(6, 4)
    assert torch.allclose(again(x)[0], (x @ other["layer.weight"].T + other["layer.bias"]).relu(), atol=1e-6)
    assert agrees(again.bind(Counted()), 6)
    assert agrees(loaded(again.bind(Counted()).save(tmp_path / "third")), 6)


def test_weights_that_are_bound_to_a_model_without_some(tmp_path: Path) -> None:
    with torch.device("meta"):
        bare = Counted()
    model = compiled(bare)
    with pytest.raises(InputError, match=r"has no values for layer\.weight") as no:
        model.save(tmp_path / "bare")
    assert "bind them first" in str(no.value)
    assert agrees(loaded(model.bind(Counted()).save(tmp_path / "bound")), 4)


def test_a_pickle_is_what_save_writes(lowerings: list[object]) -> None:
    model = compiled()
    assert agrees(model, 1)
    assert agrees(model, 4)
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(model))))
    assert agrees(again, 4)
    assert agrees(again, 1)
    assert len(lowerings) == 2


def test_it_is_no_bundle_and_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = compiled().save(tmp_path / "saved")
    for read in (spyre_mlir.check, lambda path: read_bundle(path, make_context())):
        with pytest.raises(ReadError, match="a program for each size") as no:
            read(folder)
        assert ".specialize(s0=…).save(…)" in str(no.value)
    for tool in (run_tool, compile_tool):
        words = [str(folder)] if tool is run_tool else ["--compare", str(folder), str(folder)]
        assert tool.run(words) == 1
        assert "a program for each size" in capsys.readouterr().err
    with pytest.raises(InputError, match="this model has one for each size"):
        spyre_mlir.load(folder, host=lambda *_: ())


def test_damage_is_an_error_or_lowered_again(tmp_path: Path, lowerings: list[object]) -> None:
    model = compiled()
    assert agrees(model, 3)
    folder = model.save(tmp_path / "saved")
    (entry,) = (folder / "lowered").iterdir()
    *content, last = entry.read_bytes()
    entry.write_bytes(bytes([*content, last ^ 1]))
    assert agrees(loaded(folder), 3)
    assert len(lowerings) == 2
    with (folder / "program.pt2").open("ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match="other bytes than were saved"):
        loaded(folder)
    (folder / "sizes.json").write_text('{"format": "spyre-mlir model with symbols", "version": 1}')
    with pytest.raises(ReadError, match="lacks or misspells"):
        loaded(folder)
