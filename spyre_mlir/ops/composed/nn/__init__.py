"""Composed neural-network functions, one file per group of `torch.nn.functional`.

Decision: docs/decisions/0023-fully-masked-rows.md
"""
