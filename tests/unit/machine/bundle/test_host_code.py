"""Code of a user's own walks through a host program; what does not fit it is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

import spyre_mlir
from spyre_mlir.errors import InputError
from tests.functions import FunctionModel

X = torch.linspace(-1, 1, 4 * 64).reshape(4, 64)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two tensors: sent by steps 0 and 1, a buffer by 2, launched by 3, read by 4."""
    compiled: Any = spyre_mlir.compile(FunctionModel(lambda x, y: x - y), (X, X))
    return compiled.save(tmp_path_factory.mktemp("code") / "bundle")


def test_a_change_of_the_code_changes_what_the_card_does(bundle: Path) -> None:
    seen: list[str] = []

    def main(card: Any, x: Any, y: Any) -> Any:
        first, second, result = card.to_device(0, y), card.to_device(1, x), card.alloc(2)  # the other way round
        card.launch(3, first, second, result)
        seen.append(card.steps[3].name)
        return card.from_device(4, result)

    got = spyre_mlir.load(bundle, host=main, numerics="exact")(X, X * 3)
    torch.testing.assert_close(got, X * 3 - X)
    assert seen == ["spyre.kernel.launch"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (lambda card, x, y: card.to_device(9, x), "there is no step 9, the program has 5"),
        (lambda card, x, y: card.alloc(0), "step 0 is spyre.kernel.to_device, not alloc"),
        (lambda card, x, y: card.launch(3, x), "step 3, spyre.kernel.launch, takes 3 values, got 1"),
        (lambda card, x, y: (x, y), "it returns 2 tensors, the program 1"),
    ],
)
def test_code_of_another_program_is_refused(code: Any, message: str, bundle: Path) -> None:
    with pytest.raises(InputError, match=f"the host code does not fit the program: {message}") as caught:
        spyre_mlir.load(bundle, host=code)(X, X)
    assert caught.value.hint == "emit the code of this bundle again"
