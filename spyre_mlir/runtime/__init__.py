"""The software of a card: found, given a bundle step by step, and compared with the machine."""

from spyre_mlir.runtime.comparison import CardComparison, KernelOnCard, compare_with_card
from spyre_mlir.runtime.finding import CardSoftware, find_card

__all__ = ["CardComparison", "CardSoftware", "KernelOnCard", "compare_with_card", "find_card"]
