"""Parts that folders of saved models share: digests, and options as JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from spyre_mlir.backend.json_file import dump_text, load_text
from spyre_mlir.dynamic.exported import check_digests, choices_as_json, choices_from_json, choices_of, digests_of
from spyre_mlir.errors import InputError, ReadError
from spyre_mlir.hw.spec import spec_with
from spyre_mlir.options import CompileOptions


def test_options_are_read_as_they_were_said() -> None:
    options = CompileOptions(spec=spec_with({"cores_per_card": 16}), keep_float32=True, max_size=8, numerics="exact")
    choices = choices_of(options)
    assert "numerics" not in choices
    assert choices_from_json(dict(load_text(dump_text(choices_as_json(choices)), "options"))) == choices  # type: ignore[call-overload]


def test_files_are_those_that_were_saved(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    digests = digests_of(tmp_path, ["a"])
    check_digests(tmp_path, digests, check=True)
    (tmp_path / "a").write_text("two")
    check_digests(tmp_path, digests, check=False)
    with pytest.raises(InputError, match="other bytes than were saved"):
        check_digests(tmp_path, digests, check=True)
    with pytest.raises(ReadError, match="b is not there"):
        check_digests(tmp_path, {"b": ""}, check=False)
