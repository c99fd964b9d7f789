"""spyre-lsp: its flags, and its end without the package of the protocol."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from spyre_mlir.cli import lsp
from spyre_mlir.cli.language import server
from spyre_mlir.errors import InputError


@pytest.mark.parametrize("flags", [[], ["--stdio"]])
def test_one_editor_is_served(flags: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[str] = []
    monkeypatch.setattr(
        server, "make_server", lambda version: SimpleNamespace(start_io=lambda given, said: served.append(version))
    )
    assert lsp.main(flags) == 0
    assert len(served) == 1


def test_a_missing_package_is_an_error(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def missing(version: str) -> None:
        raise InputError("missing", hint=version and "install it")

    monkeypatch.setattr(server, "make_server", missing)
    assert lsp.main([]) == 1
    assert "try: install it" in capsys.readouterr().err


def test_other_flags_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert lsp.main(["--port", "1"]) == 1
    assert "unrecognized arguments" in capsys.readouterr().err
