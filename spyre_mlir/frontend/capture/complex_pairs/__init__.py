"""Complex numbers of a functional graph as pairs of real tensors."""
