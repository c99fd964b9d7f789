"""Wrong arguments of `compile`, `info` and of what they give are errors that say what was expected."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch

import spyre_mlir
from spyre_mlir.errors import InputError, UnsupportedError
from tests.functions import FunctionModel

X = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("option", "known"),
    [
        ("numerics", "exact, device, none"),
        ("addresses", "symbolic, concrete"),
        ("loops", "loop, unroll"),
        ("on_fault", "raise, warn, collect"),
        ("host_fallback", "warn, allow, error"),
    ],
)
def test_option_without_such_a_value_names_those_there_are(option: str, known: str) -> None:
    wrong: dict[str, Any] = {option: "never"}
    with pytest.raises(InputError, match=f"{option} must be one of {known}, got 'never'"):
        spyre_mlir.compile(torch.nn.ReLU(), (X,), **wrong)


@pytest.mark.parametrize("entry_point", [spyre_mlir.compile, spyre_mlir.info])
def test_arrays_are_no_inputs(entry_point: Any) -> None:
    with pytest.raises(InputError, match="example input 1 is an array of NumPy") as caught:
        entry_point(torch.nn.Bilinear(3, 3, 3), (torch.ones(1, 3), np.ones((1, 3))))
    assert caught.value.hint == "torch.from_numpy makes a tensor of it"


@pytest.mark.parametrize(("buckets", "wrong"), [(8, "8"), ([8, "9"], "'9'"), ([True], "True"), ("12", "'1'")])
def test_buckets_are_sizes(buckets: Any, wrong: str) -> None:
    with pytest.raises(InputError, match=f"buckets are a list of sizes, got {wrong}"):
        spyre_mlir.compile(
            torch.nn.ReLU(), (torch.ones(4, 3),), dynamic_shapes=({0: torch.export.Dim("n")},), buckets=buckets
        )


def test_an_iterator_of_buckets_is_read_once() -> None:
    """Its sizes are checked, and a program is made for each."""
    given: Any = iter([4, 8])
    shapes = ({0: torch.export.Dim("n")},)
    compiled: Any = spyre_mlir.compile(torch.nn.ReLU(), (torch.ones(4, 3),), dynamic_shapes=shapes, buckets=given)
    assert len(compiled.programs) == 2


@pytest.mark.parametrize("tolerance", [-1.0, float("nan"), "small"])
def test_a_tolerance_is_a_number(tolerance: Any) -> None:
    x = torch.ones(4, 3)
    with pytest.raises(InputError, match="tolerance must be a number from 0 on, got"):
        spyre_mlir.compile(torch.nn.ReLU(), (x,)).verify(x, tolerance=tolerance)


@pytest.mark.parametrize("entry_point", [spyre_mlir.compile, spyre_mlir.info])
def test_tensor_alone_is_no_tuple_of_inputs(entry_point: Any) -> None:
    with pytest.raises(InputError, match="example inputs are a tuple, got Tensor") as caught:
        entry_point(torch.nn.ReLU(), torch.ones(1, 3))
    assert "(x,)" in str(caught.value)


def test_function_is_no_model() -> None:
    with pytest.raises(InputError, match="got builtin_function_or_method"):
        spyre_mlir.compile(torch.relu)(X)


def test_profile_without_such_a_name_names_those_there_are() -> None:
    model = spyre_mlir.compile(torch.nn.ReLU(), (X,))
    assert isinstance(model, spyre_mlir.CompiledModel)
    for ask in (model.timeline, lambda profile: model.report(profile=profile)):
        with pytest.raises(InputError, match="profile must be one of calibrated, peak, got 'best'"):
            ask("best")


def test_progress_is_the_import_and_every_pass() -> None:
    steps: list[str] = []
    spyre_mlir.compile(torch.nn.ReLU(), (X,), progress=steps.append)
    assert steps[:4] == ["import", "take-experts", "outline-regions", "place-inputs"]
    assert steps[-1] == "convert-spyre-kernel-to-superdsc"


@pytest.mark.parametrize(("progress", "said"), [(None, []), (False, []), (True, ["spyre-mlir: import"])])
def test_progress_where_nobody_looks(
    progress: bool | None, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    spyre_mlir.compile(torch.nn.ReLU(), (X,), progress=progress)
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[:1]) == ("", said)


def test_the_log_has_a_line_for_import_levels_and_passes(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "spyre_mlir"):
        spyre_mlir.compile(torch.nn.ReLU(), (X,))
    lines = [record.getMessage().partition(":")[0] for record in caplog.records]
    assert lines[0] == "import of ReLU"
    assert {"decompose-aten", "level aten", "level superdsc", "place-lx"} <= set(lines)


@pytest.mark.filterwarnings("ignore::spyre_mlir.transforms.utils.host_fallback.HostStepWarning")
def test_a_model_that_data_divides_is_exported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    exported = list[object]()
    export = torch.export.export

    def counted(model: Any, *args: Any, **kwargs: Any) -> Any:
        exported.append(model)
        return export(model, *args, **kwargs)

    monkeypatch.setattr(torch.export, "export", counted)
    model = FunctionModel(lambda x: x[x > 0] * 2)
    assert spyre_mlir.compile(model, (X,), numerics="exact")(X).tolist() == [2.0] * 6
    assert exported.count(model) == 1


def test_a_refused_model_is_exported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    exported = list[object]()
    export = torch.export.export
    monkeypatch.setattr(
        torch.export, "export", lambda *args, **kwargs: exported.append(args) or export(*args, **kwargs)
    )
    with pytest.raises(UnsupportedError):
        spyre_mlir.compile(FunctionModel(lambda x: x if x.sum() > 0 else -x), (X,))
    assert len(exported) == 1
