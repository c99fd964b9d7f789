"""The op cases of another front end for the same hardware, run through ours."""

from tests.op_cases import movement, pointwise, products, reductions

__all__ = ["movement", "pointwise", "products", "reductions"]
