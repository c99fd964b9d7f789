"""Results that are texts: a trace has the names of symbols where a call has the numbers."""

from __future__ import annotations

import re
from typing import Any, cast

from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument

from spyre_mlir.errors import UnsupportedError


def check_texts(exported: ExportedProgram) -> None:
    """Check that no result is a text of numbers that calls decide, as `f"{x.sum().item()}"` or `str(x.shape[0])`.

    Raises:
        UnsupportedError: a text has the name of a symbol.
    """
    results = [spec.arg for spec in exported.graph_signature.output_specs]
    texts = [a.value for a in results if isinstance(a, ConstantArgument) and isinstance(a.value, str)]
    symbols = set(map(str, cast(Any, exported).range_constraints))
    for text in texts:
        if names := symbols.intersection(re.findall(r"\w+", text)):
            raise UnsupportedError(
                f"a result is the text {text!r}, in which {min(names)} stands for a number that each call decides",
                hint="return the number, or the tensor, and make the text of it outside of the model",
            )


__all__ = ["check_texts"]
