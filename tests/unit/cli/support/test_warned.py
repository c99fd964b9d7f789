"""Warnings of our packages are said as those of the tools; the rest come as they are."""

from __future__ import annotations

import logging
import warnings

import pytest

from spyre_mlir.cli.support.warned import warnings_logged
from spyre_mlir.machine.overflows import DL16OverflowWarning
from spyre_mlir.transforms.utils.host_fallback import HostStepWarning


def test_ours_are_logged_unless_hidden(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), warnings_logged(DL16OverflowWarning, hidden=HostStepWarning):
        warnings.warn("a step", HostStepWarning, stacklevel=1)
        warnings.warn("beyond", DL16OverflowWarning, stacklevel=1)
    assert [record.getMessage() for record in caplog.records] == ["beyond"]


def test_the_rest_stay_warnings(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.warns(UserWarning, match="of somebody else"), warnings_logged(HostStepWarning):
        warnings.warn("of somebody else", UserWarning, stacklevel=1)
    assert not caplog.records
