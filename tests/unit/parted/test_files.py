"""A model in parts as a directory: what is loaded computes what was saved, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import spyre_mlir
from spyre_mlir.backend.stored import read_bundle
from spyre_mlir.errors import InputError, ReadError, UnsupportedError
from spyre_mlir.loaded import LoadedModel
from spyre_mlir.parted.model import PartedModel
from spyre_mlir.universe import make_context

pytestmark = pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")


class Scaled(nn.Module):
    """Selects rows, multiplies them, and counts them in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.scale = nn.Parameter(torch.randn(4))
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        rows = x[x.sum(-1) > 0]
        self.seen.add_(rows.shape[0])
        return rows * self.scale, self.seen + 0


def rows(count: int) -> Tensor:
    """Five rows, of which so many are selected."""
    x = torch.linspace(0.1, 1.0, 20).reshape(5, 4)
    return torch.where(torch.arange(5)[:, None] < count, x, -x)


@pytest.fixture
def compiled() -> PartedModel:
    made = spyre_mlir.compile(Scaled(), (rows(3),), keep_float32=True, specializations=2)
    assert isinstance(made, PartedModel)
    return made


@pytest.fixture
def folder(compiled: PartedModel, tmp_path: Path) -> Path:
    return compiled.save(tmp_path / "saved")


def test_what_is_loaded_is_eagers_for_every_size(folder: Path) -> None:
    loaded, model = spyre_mlir.load(folder, numerics="exact"), Scaled()
    assert isinstance(loaded, PartedModel)
    assert isinstance(loaded.parts[0], LoadedModel)
    for count in (3, 0, 1, 5, 2):
        got, wanted = loaded(rows(count)), model(rows(count))
        torch.testing.assert_close(got, wanted)
    assert len(loaded.programs) <= 3  # the number that is kept is that of the model


def test_it_is_compiled_with_the_options_of_the_model(folder: Path) -> None:
    loaded = spyre_mlir.load(folder)
    torch.testing.assert_close(loaded(rows(4))[0], Scaled()(rows(4))[0], atol=1e-6, rtol=1e-6)  # DL16 has 10 bits


def test_buffers_are_saved_as_they_are(compiled: PartedModel, tmp_path: Path) -> None:
    compiled(rows(3))
    loaded = spyre_mlir.load(compiled.save(tmp_path / "later"))
    assert compiled(rows(2))[1] == 5
    assert loaded(rows(1))[1] == 4


def test_what_was_loaded_is_saved_again(folder: Path, tmp_path: Path) -> None:
    again = spyre_mlir.load(folder).save(tmp_path / "again")
    torch.testing.assert_close(spyre_mlir.load(again, numerics="exact")(rows(2)), Scaled()(rows(2)))


def test_a_model_in_parts_is_replaced_and_nothing_else(compiled: PartedModel, folder: Path, tmp_path: Path) -> None:
    (folder / "left").write_text("")
    compiled.save(folder)
    assert not (folder / "left").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("")
    with pytest.raises(InputError, match="neither empty nor a bundle"):
        compiled.save(tmp_path / "other")


def test_it_is_no_bundle(folder: Path) -> None:
    for read in (spyre_mlir.check, lambda path: read_bundle(path, make_context())):
        with pytest.raises(ReadError, match="data divides this model into parts") as no:
            read(folder)
        assert "spyre_mlir.load" in str(no.value)
    with pytest.raises(InputError, match="host code is of one program"):
        spyre_mlir.load(folder, host=lambda *_: ())


def test_verification_needs_the_model(folder: Path) -> None:
    with pytest.raises(InputError, match="no torch model to compare with"):
        spyre_mlir.load(folder).verify(rows(2))


def test_another_program_is_refused(folder: Path) -> None:
    with (folder / "program.pt2").open("ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match="other bytes than were saved"):
        spyre_mlir.load(folder)
    (folder / "program.pt2").unlink()
    with pytest.raises(ReadError, match=r"program\.pt2 is not there"):
        spyre_mlir.load(folder)


@pytest.mark.parametrize(
    ("old", "new", "error", "said"),
    [
        ('"version": 3', '"version": 9', ReadError, "expected a spyre-mlir model in parts of version 3"),
        ('"specializations"', '"special"', ReadError, "lacks or misspells 'specializations'"),
        ('"cores_per_card"', '"cores"', ReadError, "a card has no number cores"),
        ('"keep_float32":', '"keep_floats":', InputError, "load has no option keep_floats"),
    ],
)
def test_what_the_directory_says_is_read_with_care(
    folder: Path, old: str, new: str, error: type[Exception], said: str
) -> None:
    path = folder / "parts.json"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(error, match=said):
        spyre_mlir.load(folder)


def test_host_steps_are_refused_again(folder: Path) -> None:
    path = folder / "parts.json"
    path.write_text(path.read_text().replace('"host_fallback": "warn"', '"host_fallback": "error"'))
    with pytest.raises(UnsupportedError, match="would run on the host"):
        spyre_mlir.load(folder)
