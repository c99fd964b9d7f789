"""Run as a script: declares one op, then takes it through every level. See test_one_declaration.py."""

from __future__ import annotations

import numpy as np

from spyre_mlir.ops.annotations import Lanes
from spyre_mlir.ops.aten import ATEN


# The one declaration. No pass, dialect or machine rule knows the name.
@ATEN.pointwise(aten=["special_spherical_bessel_j0"], opfunc="besselfwd")
def spherical_bessel(self: Lanes) -> Lanes:
    """The spherical Bessel function of order 0: sin(x) / x."""
    return np.sinc(self / np.pi)


def main() -> None:
    from tests.property.levels import check_every_level
    from tests.unit.machine.modules import parse

    module = parse(
        "func.func @main(%x: tensor<5x70xf32>) -> tensor<5x70xf32> {\n"
        "%0 = aten.special_spherical_bessel_j0(%x) : (tensor<5x70xf32>) -> tensor<5x70xf32>\n"
        "%1 = aten.neg(%0) : (tensor<5x70xf32>) -> tensor<5x70xf32>\n"
        "func.return %1 : tensor<5x70xf32>\n}"
    )
    check_every_level(module, [np.linspace(-3.0, 3.0, 350).reshape(5, 70)])
    print(module)


if __name__ == "__main__":
    main()
