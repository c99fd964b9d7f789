"""Numbers of the cost model as options of passes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from spyre_mlir.errors import InputError
from spyre_mlir.hw.cost_parameters import CALIBRATED, LAWS, differences
from spyre_mlir.transforms.utils.cost_numbers import given_numbers, number_texts


def test_given_numbers_replace_those_of_the_profile() -> None:
    assert given_numbers(()) == CALIBRATED
    given = given_numbers((" hbm_gb_per_s = 75", "kernel_fixed_us=5"))
    assert given == replace(CALIBRATED, hbm_gb_per_s=75.0, kernel_fixed_us=5.0)


def test_texts_of_numbers_are_read_back() -> None:
    for law in LAWS.values():
        assert given_numbers(number_texts(differences(law))) == law


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("hbm_gb_per_s",), "'hbm_gb_per_s' gives no number"),
        (("hbm_gb_per_s=fast",), "'hbm_gb_per_s=fast' gives no number"),
        (("hbm=75",), "no number 'hbm'; its numbers are hbm_gb_per_s,"),
        (("hbm_gb_per_s=75", "hbm_gb_per_s=80"), "hbm_gb_per_s of the cost model is given twice"),
        (("hbm_gb_per_s=-1",), "hbm_gb_per_s must be above 0, at most inf, got -1"),
        (("hbm_gb_per_s=0",), "must be above 0"),
        (("kernel_fixed_us=-1",), "must be from 0"),
        (("hbm_gb_per_s=nan",), "got nan"),
        (("product_overlap=1.5",), "product_overlap must be above 0, at most 1, got 1.5"),
    ],
)
def test_what_is_no_number_is_refused(texts: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message) as refused:
        given_numbers(texts)
    assert "cost-model.md" in str(refused.value.hint)
