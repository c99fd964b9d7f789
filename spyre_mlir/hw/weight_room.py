"""Room on the card for tensors that the host makes of weights ahead of calls."""

# What they may take beside the weights: of the bytes of all weights, and in any program.
MORE_BYTES, MORE_AT_LEAST = 0.05, 1 << 20

__all__ = ["MORE_AT_LEAST", "MORE_BYTES"]
