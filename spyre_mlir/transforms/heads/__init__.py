"""Attention heads at the aten level: which weights make them, and how many channels they have on the card."""
