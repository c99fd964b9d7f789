"""Files that are lowered before they are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from spyre_mlir.cli.support.lowered_file import lowered_file
from spyre_mlir.errors import InputError
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

RELU = """func.func @main(%x: tensor<4x64xf16>) -> tensor<4x64xf16> {
  %0 = aten.relu(%x) : (tensor<4x64xf16>) -> tensor<4x64xf16>
  func.return %0 : tensor<4x64xf16>
}
"""


def test_the_lowered_program_keeps_its_name_and_locations_and_is_gone_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "relu.mlir"
    path.write_text(RELU)
    with lowered_file(str(path), "superdsc") as found:
        assert Path(found).name == "relu.mlir" and found != str(path)
        text = Path(found).read_text()
        assert "superdsc.sdsc" in text and "relu.mlir" in text
        assert parse_module(text, make_context())
    assert not Path(found).exists() and path.read_text() == RELU


def test_nothing_is_done_without_a_level() -> None:
    with lowered_file("no/such/file", None) as found:
        assert found == "no/such/file"


@pytest.mark.parametrize("name", ["missing.mlir", "bundle"])
def test_what_is_no_text_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "bundle").mkdir()
    with (
        pytest.raises(InputError, match=r"--to lowers an \.mlir file") as refused,
        lowered_file(str(tmp_path / name), "superdsc"),
    ):
        pass
    assert refused.value.hint is not None and "bundles are lowered already" in refused.value.hint
