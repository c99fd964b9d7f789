"""What `spyre-run` says of numbers beyond DLFloat16."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.cli.support.overflows import say_overflows
from spyre_mlir.errors import OverflowFault
from spyre_mlir.machine.faults import FaultLog
from spyre_mlir.machine.overflows import Overflow
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context


def met(*functions: str) -> FaultLog:
    log = FaultLog()
    for number, function in enumerate(functions):
        log.overflows[f"{number}"] = Overflow(f"{number}:{function}", "Tensor1", 1, 1e10)
    return log


def main(kind: str) -> ModuleOp:
    """A program of a tensor of this type."""
    text = f"func.func @main(%x: {kind}) -> {kind} {{ func.return %x : {kind} }}"
    return parse_module(text, make_context())


def test_a_warning_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    say_overflows("warn", met("add"))
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("warning: numbers went beyond 8,573,157,376, the largest DLFloat16")
    assert err.endswith("see docs/dl16-exceptions.md\n")
    assert "keep_float32" not in err


def test_float32_is_proposed_where_the_program_has_it_and_the_function_takes_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say_overflows("warn", met("add"), main("tensor<4xf32>"))
    assert "try keep_float32=True; see" in capsys.readouterr().err
    say_overflows("warn", met("add", "tanh"), main("tensor<4xf32>"))
    assert "try keep_float32=True, which helps 1 of 2 of them; see" in capsys.readouterr().err
    say_overflows("warn", met("add"), main("tensor<4xf16>"))
    assert "keep_float32" not in capsys.readouterr().err


def test_results_are_refused_where_asked(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OverflowFault, match="numbers went beyond"):
        say_overflows("raise", met("add"))
    assert capsys.readouterr().err == ""


def test_nothing_is_said_where_asked_or_where_nothing_went_beyond(capsys: pytest.CaptureFixture[str]) -> None:
    say_overflows("ignore", met("add"))
    say_overflows("warn", met())
    say_overflows("raise", met())
    assert capsys.readouterr() == ("", "")
