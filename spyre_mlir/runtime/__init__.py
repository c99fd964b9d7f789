"""Calls of programs: tensors that stay on the card, turns, larger integers, and runs on the software of a card."""

from spyre_mlir.runtime.comparison import CardComparison, KernelOnCard, compare_with_card
from spyre_mlir.runtime.finding import CardSoftware, find_card

__all__ = ["CardComparison", "CardSoftware", "KernelOnCard", "compare_with_card", "find_card"]
