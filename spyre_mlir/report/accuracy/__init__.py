"""Accuracy of device numerics: the error of results and launches, what causes it, and what was tried against it."""

from spyre_mlir.report.accuracy.attempts import Attempt as Attempt
from spyre_mlir.report.accuracy.outcome import Accuracy as Accuracy
from spyre_mlir.report.accuracy.outcome import ErrorGroup as ErrorGroup
from spyre_mlir.report.accuracy.outcome import placed as placed
