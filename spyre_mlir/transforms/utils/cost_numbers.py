"""Numbers of the cost model that a pass is given as an option."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spyre_mlir.errors import InputError
from spyre_mlir.hw.cost_parameters import CostParameters, altered

_HINT = 'docs/reference/cost-model.md lists the numbers with their values; write numbers="hbm_gb_per_s=75"'


def given_numbers(texts: Iterable[str]) -> CostParameters:
    """Return the calibrated profile of the cost model with these numbers in place of its own.

    Args:
        texts: as ``name=value``, the unit as in the name.

    Raises:
        InputError: a text is none of these, or the cost model has no such number or no use for its value.
    """
    numbers: dict[str, float] = {}
    for text in texts:
        name, _, value = (part.strip() for part in text.partition("="))
        if name in numbers:
            raise InputError(f"the number {name} of the cost model is given twice", hint=_HINT)
        try:
            numbers[name] = float(value)
        except ValueError as error:
            raise InputError(f"'{text}' gives no number of the cost model", hint=_HINT) from error
    try:
        return altered(numbers)
    except ValueError as error:
        raise InputError(str(error), hint=_HINT) from error


def number_texts(numbers: Mapping[str, float]) -> tuple[str, ...]:
    """Return numbers of the cost model as the option of a pass takes them."""
    return tuple(f"{name}={number!r}" for name, number in numbers.items())


__all__ = ["given_numbers", "number_texts"]
