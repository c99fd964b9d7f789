"""Runs beyond a call of the machine: on the software of a card step by step, and again where integers are larger."""

from spyre_mlir.runtime.comparison import CardComparison, KernelOnCard, compare_with_card
from spyre_mlir.runtime.finding import CardSoftware, find_card

__all__ = ["CardComparison", "CardSoftware", "KernelOnCard", "compare_with_card", "find_card"]
