"""Attributes of modules that compiled models lack."""

from __future__ import annotations

import pytest

from spyre_mlir.text.no_module import IsNoModule, missing

LIBRARY = 'where a library wants a module, give it torch.compile(model, backend="spyre")'


class Stand(IsNoModule):
    known = 1


def test_what_is_there_is_given() -> None:
    assert Stand().known == 1
    assert not hasattr(Stand(), "eval")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "eval",
            "Stand has no attribute 'eval'; it is no torch.nn.Module: call eval of the model, and compile it then",
        ),
        (
            "forward",
            f"Stand has no attribute 'forward'; it is no torch.nn.Module: call the compiled model itself; {LIBRARY}",
        ),
        (
            "config",
            f"Stand has no attribute 'config'; it is no torch.nn.Module: the model has it; {LIBRARY}",
        ),
        ("other", "Stand has no attribute 'other'"),
    ],
)
def test_the_message_says_what_to_do(name: str, text: str) -> None:
    assert str(missing("Stand", name)) == text
    with pytest.raises(AttributeError) as caught:
        getattr(Stand(), name)
    assert str(caught.value) == text
