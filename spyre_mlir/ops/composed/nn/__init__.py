"""Composed neural-network functions, one file per group of `torch.nn.functional`."""
