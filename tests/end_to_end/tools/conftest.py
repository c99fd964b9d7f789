"""The fixtures of the tools' unit tests."""

from tests.unit.cli.conftest import bundle, pristine, refused, saved, spyre_run

__all__ = ["bundle", "pristine", "refused", "saved", "spyre_run"]
